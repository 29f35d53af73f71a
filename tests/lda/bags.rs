//! Bags of words: LDA-C's and UCI's formats, and what is wrong with them.
use super::lda::{Corpus, Token};
use super::options;
use crate::common::program::refuses;
use hectare_testing::Folder;
use std::fs;

/// Documents as sorted lists of words.
fn documents(corpus: &Corpus) -> Vec<Vec<&str>> {
    let mut documents = vec![Vec::new(); corpus.documents];
    for Token { doc, word } in corpus.train.iter().chain(&corpus.held_out) {
        documents[*doc as usize].push(corpus.words[*word as usize].as_str());
    }
    documents.iter_mut().for_each(|words| words.sort_unstable());
    documents
}

#[test]
fn both_formats_give_the_documents_with_their_words() {
    let folder = Folder::new("bags-good");
    let vocabulary = folder.write("vocab.txt", "apple\npear\nplum\nnever\n");
    let lda_c = folder.write("docs.ldac", "2 0:3 1:12\n0\n1 2:1\n");
    let uci = folder.write("docword.txt", "3\n4\n3\n1 2 12\n1 1 3\n3 3 1\n");
    let load = |more: &[&str]| Corpus::load(&options(more)).unwrap();
    let fruit = [["apple"; 3].as_slice(), &["pear"; 12]].concat();
    for args in [["--lda-c", &lda_c], ["--uci", &uci]] {
        let named = load(&[&args[..], &["--vocabulary", &vocabulary]].concat());
        // A word that is in no document is none; a document without words keeps its number.
        assert_eq!(named.words, ["pear", "apple", "plum"]);
        assert_eq!(documents(&named), [fruit.clone(), vec![], vec!["plum"]], "{args:?}");
        assert_eq!(named.held_out.len(), 1);
        let frequent = load(&[&args[..], &["--vocabulary", &vocabulary, "--min-count", "4"]].concat());
        assert_eq!(frequent.words, ["pear"]);
    }
    // Numbers as they stand in the file.
    assert_eq!(load(&["--lda-c", &lda_c]).words, ["1", "0", "2"]);
    assert_eq!(load(&["--uci", &uci]).words, ["2", "1", "3"]);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let folder = Folder::new("bags-bad");
    let cases = [
        ("--lda-c", "", "the file is empty"),
        ("--lda-c", "1 0:12\nthe cat sat\n", ":2: expected a document of LDA-C"),
        ("--lda-c", "1 0:12\n\n", "found an empty line"),
        ("--lda-c", "2 0:12\n", ":1: the line says 2 words and counts 1: was it cut off?"),
        ("--lda-c", "1 0:x\n", "expected a number from 0, found \"x\""),
        ("--lda-c", "1 0:-1\n", "expected a number from 0, found \"-1\""),
        ("--lda-c", "1 0:0\n", "counted 0 times"),
        ("--lda-c", "2 0:12 1:4294967295\n", "more than 4294967295 words"),
        ("--lda-c", "1 99999999999:1\n", "word 99999999999: the last one"),
        ("--uci", "", "the file is empty"),
        ("--uci", "2\n3\n1\n1 1 4000000000\n", "is counted 4000000000 times: 67108864 at most"),
        (
            "--uci",
            "1 1 12\n1 2 3\n",
            ":1: expected the number of documents alone in this line, found \"1 1 12\"",
        ),
        ("--uci", "3\n4\n", ":3: expected the number of counts"),
        ("--uci", "1\n1\n1\n1 2 12\n", ":4: word 2: 1 to 1"),
        ("--uci", "1\n1\n1\n0 1 12\n", ":4: document 0: 1 to 1"),
        ("--uci", "1\n1\n2\n1 1 12\n", "its third line tells of 2 counts, and it has 1"),
        ("--uci", "1\n1\n1\n1 1\n", ":4: expected the numbers of a document and a word, and a count"),
        ("--uci", "99999999999\n1\n1\n1 1 1\n", "99999999999 documents"),
        ("--uci", "1\n1\n1\n1 1 3\n", "no document has 10 words"),
    ];
    for (number, (option, text, says)) in cases.into_iter().enumerate() {
        let file = folder.write(&format!("{number}.txt"), text);
        refuses("lda", &[(&[option, &file], says)]);
    }
    let vocabulary = folder.write("vocab.txt", "apple\n");
    let none = folder.write("none.txt", "");
    let lda_c = folder.write("docs.ldac", "2 0:3 1:9\n");
    let uci = folder.write("docword.txt", "1\n2\n2\n1 1 3\n1 2 9\n");
    let packed = folder.at("docword.txt.gz");
    fs::write(&packed, [0x1f, 0x8b, 8, 0]).unwrap();
    refuses(
        "lda",
        &[
            (&["--lda-c", &lda_c, "--vocabulary", &vocabulary], "has 1 words, but"),
            (&["--uci", &uci, "--vocabulary", &vocabulary], "has 1 words, and"),
            (&["--uci", &uci, "--vocabulary", &none], "none.txt: the file is empty"),
            (&["--vocabulary", &vocabulary], "only with --lda-c or --uci"),
            (&["--uci", &packed], "is compressed: unpack it first"),
            (&["--lda-c", "/nowhere"], "cannot read /nowhere"),
        ],
    );
}
