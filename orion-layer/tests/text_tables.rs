//! Dense arrays from and to text: the same on any number of workers.
use crate::common;

use common::Scratch;
use hectare_orion::array::text::Separator;
use hectare_orion::run;

#[test]
fn rows_are_read_in_order_on_any_number_of_workers() {
    let scratch = Scratch::new("tables");
    let spaces = scratch.file("spaces", "# two columns\n\n1 2\n 3.5\t-4  \n5e-1 6\r\n");
    let commas = scratch.file("commas", "1,2, 3\n4,5,6");
    let empty = scratch.file("empty", "# nothing\n");
    for workers in 1..=4 {
        run(workers, |w| {
            let a = w.text_array::<f64>(&spaces, Separator::Whitespace)?;
            assert_eq!((a.shape(), a.to_vec(w)?), ([3, 2], vec![1.0, 2.0, 3.5, -4.0, 0.5, 6.0]));
            let b = w.text_array::<i16>(&commas, Separator::Text(","))?;
            assert_eq!((b.shape(), b.to_vec(w)?), ([2, 3], vec![1, 2, 3, 4, 5, 6]));
            assert_eq!(w.text_array::<f32>(&empty, Separator::Whitespace)?.shape(), [0, 0]);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn what_is_saved_is_read_bit_for_bit_and_can_be_written() {
    let scratch = Scratch::new("tables-saved");
    for workers in 1..=3 {
        let path = scratch.0.join(format!("{workers}"));
        run(workers, |w| {
            let a = w.normal::<f32, 2>([101, 7], 1e-3, 4)?;
            a.save_text(w, &path)?;
            let mut b = w.text_array::<f32>(&path, Separator::Whitespace)?;
            assert_eq!(b.to_vec(w)?, a.to_vec(w)?);
            b.write(w, 99..101, &[1.0; 14])?;
            assert_eq!(b.read_range(w, [98..101, 6..7])?, [a.get(w, [98, 6])?, 1.0, 1.0]);
            // One dimension: a line per element.
            w.range(-2..3)?.save_text(w, &path)?;
            assert_eq!(w.text_array::<i64>(&path, Separator::Whitespace)?.shape(), [5, 1]);
            Ok(())
        })
        .unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "-2\n-1\n0\n1\n2\n");
    }
}

#[test]
fn a_bad_row_is_the_same_error_on_every_worker() {
    let scratch = Scratch::new("tables-bad");
    let mut lines: Vec<String> = (0..200).map(|k| format!("{k} {k}")).collect();
    lines[150] = "150".into();
    lines[190] = "190 x".into();
    let short = scratch.file("short", &lines.join("\n"));
    lines[150] = "150 150".into();
    let word = scratch.file("word", &lines.join("\n"));
    for workers in 1..=4 {
        let errors = run(workers, |w| {
            let said = |result: hectare_orion::Result<_>| result.map(drop).unwrap_err().to_string();
            let short = said(w.text_array::<f32>(&short, Separator::Whitespace));
            let word = said(w.text_array::<f32>(&word, Separator::Whitespace));
            let missing = said(w.text_array::<f32>("/nowhere/at/all", Separator::Whitespace));
            w.barrier()?;
            Ok([short, word, missing])
        });
        for [found, number, missing] in errors.unwrap() {
            let expected = "expected 2 elements, as in the first row, found 1";
            assert_eq!(found, format!("{}:151: {expected}", short.display()));
            assert_eq!(number, format!("{}:191: column 2: expected a number, found \"x\"", word.display()));
            assert_eq!(missing, "/nowhere/at/all: No such file or directory (os error 2)");
        }
    }
}
