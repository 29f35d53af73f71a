use super::*;
use proptest::prelude::*;
use std::fs;

/// A file that is removed again.
struct Temporary(PathBuf);

impl Temporary {
    fn new(content: impl AsRef<[u8]>) -> Temporary {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("hectare-text-test-{}-{number}", std::process::id()));
        fs::write(&path, content).unwrap();
        Temporary(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn lines(file: &Temporary, share: Share) -> Vec<(String, usize)> {
    let mut lines = Vec::new();
    for_each_line(&file.0, share, |line, offset| {
        lines.push((line.to_owned(), offset));
        Ok(())
    })
    .unwrap();
    lines
}

fn in_shares(file: &Temporary, of: usize) -> Vec<(String, usize)> {
    (0..of).flat_map(|part| lines(file, Share { part, of })).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_line_is_read_once_however_the_file_is_shared(
        parts in prop::collection::vec("[a-zé ]{0,9}", 0..12), crlf: bool, last_end: bool,
    ) {
        let end = if crlf { "\r\n" } else { "\n" };
        let mut text = parts.join(end);
        if last_end {
            text += end;
        }
        let file = Temporary::new(&text);
        let mut expected: Vec<&str> = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
        if text.is_empty() || text.ends_with('\n') {
            expected.pop();
        }
        for of in 1..=text.len() + 2 {
            let found = in_shares(&file, of);
            prop_assert_eq!(found.iter().map(|(line, _)| line.as_str()).collect::<Vec<_>>(), &expected[..]);
            for (line, offset) in &found {
                prop_assert!(text[*offset..].starts_with(line.as_str()));
                prop_assert!(*offset == 0 || text.as_bytes()[offset - 1] == b'\n');
            }
        }
    }
}

#[test]
fn lines_cross_the_blocks_of_the_reader() {
    // Lines of many lengths, one of them longer than a block.
    let line = |n: usize| "x".repeat(if n == 700 { 900_000 } else { n * 7 % 1500 });
    let expected: Vec<String> = (0..2000).map(line).collect();
    let file = Temporary::new(expected.join("\n"));
    for of in [1, 2, 3, 16, 101] {
        let found: Vec<String> = in_shares(&file, of).into_iter().map(|(line, _)| line).collect();
        assert_eq!(found, expected, "in {of} shares");
    }
}

#[test]
fn errors_name_the_line_whoever_reads_it() {
    let mut text: Vec<String> = (0..500).map(|n| format!("{n} {n} 1.5")).collect();
    text[421] = "421 -1 1.5".into();
    let file = Temporary::new(text.join("\n"));
    for of in [1, 2, 7, 300] {
        let read = |part| read_entries(&file.0, Share { part, of }, whitespace::<f32, 2>);
        let errors: Vec<String> =
            (0..of).filter_map(|part| read(part).err()).map(|e| e.to_string()).collect();
        let name = file.0.display();
        assert_eq!(
            errors,
            [format!("{name}:422: expected an index (a whole number, not negative), found \"-1\"")],
            "in {of} shares"
        );
    }
}

#[test]
fn errors_of_encoding_name_line_and_byte() {
    let file = Temporary::new(b"0 1 2\n0 2 \xFF\n0 3 4\n");
    for of in 1..20 {
        let read = |part| read_entries(&file.0, Share { part, of }, whitespace::<f32, 2>);
        let errors: Vec<String> =
            (0..of).filter_map(|part| read(part).err()).map(|e| e.to_string()).collect();
        assert_eq!(errors.len(), 1, "in {of} shares: {errors:?}");
        assert!(errors[0].ends_with(":2: byte 5 of this line is not UTF-8"), "{}", errors[0]);
    }
    // An error before is said first.
    let file = Temporary::new(b"0 1 x\n0 2 \xFF\n");
    let error = read_entries(&file.0, Share::ALL, whitespace::<f32, 2>).unwrap_err().to_string();
    assert!(error.contains(":1: "), "{error}");
}

#[test]
fn files_that_cannot_be_read() {
    let missing = read_rows("/nowhere/at all", Share::ALL, libsvm).unwrap_err();
    assert!(missing.to_string().starts_with("cannot read /nowhere/at all: "), "{missing}");
    let directory = read_rows(std::env::temp_dir(), Share::ALL, libsvm).unwrap_err();
    assert!(matches!(directory, TextError::NotAFile { .. }));
    let empty = Temporary::new("");
    assert!(read_entries(&empty.0, Share { part: 1, of: 2 }, csv::<f64, 3>).unwrap().is_empty());
}

#[test]
fn formats_of_columns() {
    assert_eq!(movielens("1::1193::5::978300760", 0), Ok(Some(([0, 1192], 5.0))));
    assert!(movielens("0::1193::5::978300760", 0).unwrap_err().to_string().contains("begin at 1"));
    assert!(movielens("1::1193", 0).unwrap_err().to_string().contains("3 columns or more"));
    assert_eq!(whitespace::<f32, 1>(" 3\t -0.5 ", 0), Ok(Some(([3], -0.5))));
    assert_eq!(whitespace::<u8, 3>("3 4 5 6", 0), Ok(Some(([3, 4, 5], 6))));
    assert_eq!(whitespace::<f32, 1>("# 3", 9), Ok(None));
    assert_eq!(whitespace::<f32, 1>("   ", 9), Ok(None));
    assert!(
        whitespace::<f32, 2>("1 2 3 4", 0).unwrap_err().to_string().contains("expected 3 columns (2 indices")
    );
    assert!(whitespace::<f32, 2>("1 2 NaN", 0).unwrap_err().to_string().contains("finite"));
    assert_eq!(csv::<f64, 2>("1, 2, 3e2", 7), Ok(Some(([1, 2], 300.0))));
    assert_eq!(csv::<f64, 2>("row,column,value", 0), Ok(None));
    assert!(csv::<f64, 2>("row,column,value", 7).is_err());
    assert!(csv::<f64, 2>("1,column,value", 0).is_err());
    for header in [",row,column,value", "\"\",row,column,value", "Unnamed: 0,row,column,value"] {
        assert_eq!(csv::<f64, 2>(header, 0), Err(LineError::NoName), "pandas writes the numbers of rows so");
    }
    assert_eq!(tsv::<String, 1>("1\ta b", 7), Ok(Some(([1], "a b".to_owned()))));
    assert!(tsv::<f32, 1>("1\t\t2", 7).is_err());
}

#[test]
fn a_byte_order_mark_and_a_header_are_passed_over() {
    let file = Temporary::new("\u{FEFF}user,item,rating\r\n0,1,2\r\n3,4,5");
    for of in 1..30 {
        let read = |part| read_entries(&file.0, Share { part, of }, csv::<i32, 2>).unwrap().into_vec();
        let values: Vec<i32> = (0..of).flat_map(read).map(|entry| entry.value).collect();
        assert_eq!(values, [2, 5], "in {of} shares");
    }
    let file = Temporary::new("\u{FEFF}0,1,2\r\n3,4,5");
    for of in 1..30 {
        let read = |part| read_entries(&file.0, Share { part, of }, csv::<i32, 2>).unwrap().into_vec();
        let values: Vec<i32> = (0..of).flat_map(read).map(|entry| entry.value).collect();
        assert_eq!(values, [2, 5], "in {of} shares, without a header");
    }
}

#[test]
fn indices_of_two_to_the_32_are_refused() {
    let file = Temporary::new("4294967295 1\n4294967296 1\n");
    let error = read_entries(&file.0, Share::ALL, whitespace::<f32, 1>).unwrap_err().to_string();
    assert!(error.contains(":2: dimension 0 would have extent 4294967297"), "{error}");
}

#[test]
fn rows_of_libsvm() {
    let row = |line| libsvm(line, 0);
    assert_eq!(row("+1 1:0.5 4294967295:2 # x").unwrap().unwrap().features, [(0, 0.5), (4_294_967_294, 2.0)]);
    assert_eq!(row("0").unwrap(), Some(LabelledRow { label: 0.0, features: vec![] }));
    assert_eq!(row("  # nothing").unwrap(), None);
    for (line, what) in [
        ("1 0:1", "features begin at 1 here, found 0"),
        ("1 3:1 3:2", "feature 3 comes after feature 3"),
        ("1 4294967296:1", "too large"),
        ("1 -2:1", "\"-2\""),
        ("1 2:nan", "finite"),
        ("1 2", "expected index:value, found \"2\""),
        ("1,2 2:1", "label: expected a number"),
        ("1 qid:2 2:1", "query ids"),
    ] {
        let error = row(line).unwrap_err().to_string();
        assert!(error.contains(what), "{line}: {error}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(values in prop::collection::vec((0u32..100, any::<u32>(), any::<f32>()), 0..40)) {
        let list = values.into_iter().filter(|(_, _, value)| value.is_finite());
        let list: Vec<_> = list.map(|(i, j, value)| crate::entries::Entry { key: [i, j], value }).collect();
        let mut text = Vec::new();
        write_entries(&mut text, &list).unwrap();
        let file = Temporary::new(text);
        let read = read_entries(&file.0, Share::ALL, whitespace::<f32, 2>).unwrap();
        prop_assert_eq!(read.as_slice(), &list[..]);
    }
}

#[test]
fn rows_are_written_as_lines() {
    let mut text = Vec::new();
    write_rows(&mut text, &[1.0, 2.5, -0.1, 1e-9], 2).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), "1 2.5\n-0.1 0.000000001\n");
}

/// MovieLens-1M and a9a, where they are (they are not part of the project).
#[test]
fn real_files() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    if !data.join("ml1m.train.txt").exists() || !data.join("a9a").exists() {
        return hectare_testing::skip("shared data", data.display());
    }
    let read = |part| {
        read_entries(data.join("ml1m.train.txt"), Share { part, of: 3 }, whitespace::<f32, 2>).unwrap()
    };
    let shares = [read(0), read(1), read(2)];
    assert_eq!(shares.iter().map(Entries::len).sum::<usize>(), 899_742);
    let extent = |dim: usize| shares.iter().map(|share| share.shape()[dim]).max();
    assert_eq!((extent(0), extent(1)), (Some(6040), Some(3449)));
    let rows = read_rows(data.join("a9a"), Share::ALL, libsvm).unwrap();
    assert_eq!(rows.len(), 32_560);
    assert!(rows.iter().all(|row| row.features.last().is_none_or(|&(index, _)| index < 123)));
}

proptest! {
    #[test]
    fn no_line_makes_a_parser_panic(line in "[0-9:,.\\-+e#\t qid\"é]{0,40}", any in "\\PC{0,40}", offset: usize) {
        for line in [&line, &any] {
            let _ = (movielens(line, offset), whitespace::<u8, 3>(line, offset), csv::<String, 0>(line, offset));
            let _ = (tsv::<i64, 1>(line, offset), libsvm(line, offset), libsvm_from(u32::MAX)(line, offset));
        }
    }
}
