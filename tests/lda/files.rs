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
        let list = fs::read_to_string(path.join("documents.txt")).unwrap();
        assert_eq!(list.lines().count(), corpus.documents);
        for (line, shares) in list.lines().zip(&documents) {
            let parts: Vec<(usize, f32)> = line
                .split_terminator(' ')
                .map(|part| part.split_once(':').unwrap())
                .map(|(topic, share)| (topic.parse().unwrap(), share.parse().unwrap()))
                .collect();
            assert_eq!(parts.len(), shares.iter().filter(|share| **share >= 0.01).count());
            assert!(parts.is_sorted_by(|a, b| a.1 >= b.1), "{line}");
            assert!(parts.iter().all(|(topic, share)| (shares[*topic] - share).abs() < 1e-4), "{line}");
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

#[test]
fn documents_get_shares_of_loaded_topics() {
    let folder = std::env::temp_dir().join(format!("hectare-lda-loaded-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let write = |name: &str, text: &str| {
        fs::write(path(name), text).unwrap();
        path(name)
    };
    // Fruit, and metals.
    let (fruit, metals) = ("apple pear plum cherry", "iron copper zinc lead");
    let line = |a: &str, times: usize, b: &str, more: usize| {
        format!("{} {}\n", [a].repeat(times).join(" "), [b].repeat(more).join(" "))
    };
    let text: String = (0..40)
        .map(|k| if k % 2 == 0 { line(fruit, 6, metals, 0) } else { line(fruit, 0, metals, 6) })
        .collect();
    let (train, model) = (write("train.txt", &text), path("model"));
    let learn = [
        "--text",
        &train,
        "--lines",
        "--skip-top",
        "0",
        "--topics",
        "2",
        "--seed",
        "3",
        "--quiet",
        "--save",
        &model,
    ];
    assert!(program("lda", &learn).status.success());
    // Another order, and words that the topics do not know.
    let new = write(
        "new.txt",
        &[
            line(metals, 5, "granite", 9),
            line(fruit, 5, "granite", 2),
            line(fruit, 4, metals, 4),
            "granite\n".into(),
        ]
        .concat(),
    );
    let mut seen = Vec::new();
    for more in [&["--workers", "1"][..], &["--workers", "3"], &["--serial"]] {
        let out = path("shares");
        let args = ["--text", &new, "--lines", "--load", &model, "--save", &out];
        let output = program("lda", &[&args[..], more].concat());
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && said.contains("after 30 passes"), "{said}");
        seen.push(shares(&folder.join("shares/documents.npy")));
        let lines = fs::read_to_string(folder.join("shares/documents.txt")).unwrap();
        assert_eq!(lines.lines().count(), 4);
    }
    assert!(seen[0] == seen[1] && seen[0] == seen[2], "the same bits on any number of workers");
    let of = &seen[0];
    let metal = usize::from(of[0][1] > of[0][0]);
    assert!(of[0][metal] > 0.9 && of[1][metal] < 0.1 && (of[2][metal] - 0.5).abs() < 0.1, "{of:?}");
    assert!((of[3][0] - 0.5).abs() < 1e-6, "{of:?}");
    let unknown = write(
        "unknown.txt",
        "granite granite granite granite granite granite granite granite granite granite\n",
    );
    refuses(
        "lda",
        &[
            (&["--text", &unknown, "--lines", "--load", &model], "hardly a word of those in"),
            (&["--text", &new, "--load", "/nowhere"], "--load /nowhere"),
        ],
    );
    fs::write(folder.join("model/vocabulary.txt"), "apple\n").unwrap();
    refuses("lda", &[(&["--text", &new, "--load", &model], "topics.npy has 2 rows of 8 numbers, and")]);
    fs::remove_dir_all(&folder).unwrap();
}
