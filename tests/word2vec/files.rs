//! Vectors in files, in both formats of word2vec.
use super::word2vec::{Text, Vectors, read, serial, train, width};
use super::{options, refuses};
use hectare::orion::relax::Consistency;
use std::fs;
use std::path::PathBuf;

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("hectare-word2vec-{name}-{}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn vectors_are_saved_and_read_to_the_bit_and_training_begins_with_them() {
    let folder = folder("saved");
    for name in ["v.txt", "v.bin"] {
        let file = folder.join(name);
        let path = file.to_str().unwrap();
        let o = options(&["--sentences", "300", "--passes", "1", "--dimension", "10", "--save", path]);
        let text = Text::load(&o).unwrap();
        let trained = hectare::run(2, |w| train(w, &o, &text, Consistency::Async)).unwrap().swap_remove(0);
        let saved = read(&file).unwrap();
        assert_eq!((&saved.words, saved.dimension), (&text.words, 10));
        let rows = trained.vectors.chunks_exact(width(&o)).flat_map(|row| &row[..10]);
        assert!(saved.numbers.iter().eq(rows), "{name}");
        let twin = serial(&o, &text).unwrap();
        assert!(read(&file).unwrap().numbers[..10] == twin.vectors[..10], "{name}");
        // A text with words that the file does not have.
        let more = options(&["--sentences", "300", "--words", "1100", "--dimension", "10", "--load", path]);
        let text = Text::load(&more).unwrap();
        for (word, row) in text.words.iter().zip(text.start.chunks_exact(width(&more))) {
            match saved.words.iter().position(|known| known == word) {
                Some(at) => assert_eq!(twin.vectors[at * width(&o)..][..10], row[..10], "{word}"),
                None => assert!(row[..10].iter().all(|x| x.abs() <= 0.05 && *x != 0.0), "{word} {row:?}"),
            }
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn files_of_other_programs_are_read() {
    let folder = folder("others");
    let wanted = Vectors {
        words: vec!["pear".into(), "pomme_d'or".into()],
        dimension: 2,
        numbers: vec![1.5, -2e-3, 0.25, 3.0],
    };
    let text = folder.join("c.txt");
    // word2vec.c has a space behind the last number.
    fs::write(&text, "2 2\npear 1.500000 -0.002000 \npomme_d'or 0.25 3e0 \n").unwrap();
    assert_eq!(read(&text).unwrap(), wanted);
    let bytes = |row: &[f32]| row.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    // gensim ends no line behind a vector, word2vec.c does.
    for end in [&b""[..], b"\n"] {
        let path = folder.join("g.bin");
        let rows = [b"pear ", &bytes(&wanted.numbers[..2])[..], end, b"pomme_d'or "];
        fs::write(&path, [b"2 2\n", &rows.concat()[..], &bytes(&wanted.numbers[2..]), end].concat()).unwrap();
        assert_eq!(read(&path).unwrap(), wanted);
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn files_that_cannot_be_meant_are_refused() {
    let folder = folder("refused");
    let cases = [
        ("a.txt", "", "the first line has to be the number of words and the dimension"),
        ("b.txt", "w1t1 0.5 0.5\n", "the first line has to be"),
        ("c.txt", "99999999 100\nw1t1 1\n", "was it cut off?"),
        ("d.txt", "2 2\nw1t1 1 2\n", "tells of 2 words, and it has 1"),
        ("e.txt", "1 2\nw1t1 1 x\n", "line 2: expected a finite number, found \"x\""),
        ("f.txt", "1 2\nw1t1 1 NaN\n", "found \"NaN\""),
        ("g.txt", "1 2\nw1t1 1 2 3\n", "line 2: a vector of 3 numbers, not 2"),
        ("h.txt", "1 2\nw1t1 1 2\n", "has vectors of 2 numbers: say --dimension 2"),
        ("i.txt", "1 1\nnever 1\n", "has no word of the text"),
        ("k.bin", "1 1\nw1t1 abcdefg", "3 bytes follow the last of 1 vectors"),
        ("j.bin", "1 2\nw1t1 abcd", "it ends in vector 1 of 1: was it cut off?"),
    ];
    for (name, text, says) in cases {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        let dimension = if name.starts_with('i') { "1" } else { "16" };
        let path = path.to_str().unwrap();
        refuses("word2vec", &[(&["--sentences", "50", "--dimension", dimension, "--load", path], says)]);
    }
    refuses("word2vec", &[(&["--save", "/nowhere/v.txt"], "--save /nowhere/v.txt")]);
    fs::remove_dir_all(&folder).unwrap();
}
