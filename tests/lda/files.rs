//! The model in files.
use super::{lda, options};
use crate::common::program::{program, refuses};
use hectare::orion::relax::Consistency;
use lda::Corpus;
use std::fs;
use std::path::Path;

/// Rows of a matrix, all of which sum to 1.
fn shares(path: &Path) -> Vec<Vec<f32>> {
    let all = hectare::run(1, |w| {
        let matrix = w.npy_file::<f32, 2>(path)?;
        let [_, columns] = matrix.shape();
        Ok(matrix.to_vec(w)?.chunks_exact(columns).map(<[f32]>::to_vec).collect::<Vec<_>>())
    });
    let rows = all.unwrap().swap_remove(0);
    for row in &rows {
        let sum: f32 = row.iter().sum();
        assert!((sum - 1.0).abs() < 1e-4 && row.iter().all(|x| *x > 0.0), "{sum}");
    }
    rows
}

#[test]
fn topics_are_saved_as_numpy_reads_them() {
    let folder = std::env::temp_dir().join(format!("hectare-lda-saved-{}", std::process::id()));
    let path = folder.join("model");
    let o = options(&["--passes", "3", "--save", path.to_str().unwrap()]);
    let corpus = Corpus::load(&o).unwrap();
    let check = || {
        let (topics, documents) = (shares(&path.join("topics.npy")), shares(&path.join("documents.npy")));
        assert_eq!((topics.len(), topics[0].len()), (o.topics, corpus.words.len()));
        assert_eq!((documents.len(), documents[0].len()), (corpus.documents, o.topics));
        let words = fs::read_to_string(path.join("vocabulary.txt")).unwrap();
        assert!(words.lines().eq(&corpus.words));
        let list = fs::read_to_string(path.join("topics.txt")).unwrap();
        assert_eq!(list.lines().count(), o.topics);
        for (number, (line, topic)) in list.lines().zip(&topics).enumerate() {
            let best = topic.iter().copied().fold(0.0, f32::max);
            let first = line.strip_prefix(&format!("topic {number}: ")).unwrap();
            let [word, share] = first.split(' ').take(2).collect::<Vec<_>>()[..] else { panic!("{line}") };
            let place = corpus.words.iter().position(|other| other == word).unwrap();
            assert_eq!((topic[place], share), (best, format!("{best:.5}").as_str()));
        }
        // The model guesses words of documents better than one that knows nothing.
        let guess = |token: &lda::Token| {
            let topic = topics.iter().map(|row| row[token.word as usize]);
            let chance = documents[token.doc as usize].iter().zip(topic).map(|(a, b)| a * b).sum::<f32>();
            -chance.ln() / corpus.train.len() as f32
        };
        let nats: f32 = corpus.train.iter().map(guess).sum();
        assert!(nats < 0.95 * (corpus.words.len() as f32).ln(), "{nats}");
        fs::remove_dir_all(&folder).unwrap();
    };
    fs::create_dir_all(&path).unwrap();
    hectare::run(2, |w| lda::train(w, &o, &corpus, Consistency::Bsp)).unwrap();
    check();
    let small =
        ["--documents", "150", "--words", "400", "--length", "60", "--topics", "20", "--quiet", "--serial"];
    let output = program("lda", &[&small[..], &["--passes", "3", "--save", path.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{output:?}");
    check();
    refuses("lda", &[(&["--save", "/proc/nowhere"], "--save /proc/nowhere")]);
}
