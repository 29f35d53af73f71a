//! Examples whose training does harm, or nothing, end with a warning that says so; those that learn do not.
use crate::common::program::program;
use hectare::orion::array::random::Stream;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

/// Both ways of an example: with `harm` it warns of a loss worse than the baseline, in words that `says` has; without, it
/// says nothing on the standard error.
fn warns(name: &str, small: &[&str], harm: &[&str], says: &[&str]) {
    for way in [&["--serial"][..], &["--workers", "2"]] {
        for harm in [harm, &[]] {
            let args = [&["--quiet"], small, way, harm].concat();
            let output = program(name, &args);
            let error = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{name} {args:?}: {error}");
            if harm.is_empty() {
                assert_eq!(error, "", "{name} {args:?}");
                continue;
            }
            assert!(
                error.starts_with("warning: ") && error.lines().count() == 1,
                "{name} {args:?}: {error:?}"
            );
            for part in ["is worse than"].iter().chain(says) {
                assert!(error.contains(part), "{name} {args:?}: {error}");
            }
        }
    }
}

/// Files of entries with so many indices, to learn from and to test with; removed when dropped.
struct Files(PathBuf);

impl Files {
    /// Values are 2 where the first index is even; elsewhere those to learn from are 4, those to test with 5.
    fn write(name: &str, dimensions: u64) -> Files {
        let folder = std::env::temp_dir().join(format!("hectare-baselines-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let stream = Stream::new(3, "entries");
        let (mut train, mut test) = (String::new(), String::new());
        for k in 0..2000u64 {
            // The largest index is in both.
            let index = |dim| if k == 0 { 39 } else { stream.below(k * dimensions + dim, 40) };
            let key: String = (0..dimensions).map(|dim| format!("{} ", index(dim))).collect();
            let values = if index(0) % 2 == 0 { [2, 2] } else { [4, 5] };
            writeln!(train, "{key}{}", values[0]).unwrap();
            writeln!(test, "{key}{}", values[1]).unwrap();
        }
        fs::write(folder.join("train"), train).unwrap();
        fs::write(folder.join("test"), test).unwrap();
        Files(folder)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn predictions_are_compared_with_the_mean_of_the_training_values() {
    for (name, dimensions) in [("factorize", 2), ("tensor", 3)] {
        let files = Files::write(name, dimensions);
        let [train, test] = ["train", "test"].map(|name| files.0.join(name).display().to_string());
        let values = |path: &String| -> Vec<f64> {
            let text = fs::read_to_string(path).unwrap();
            text.lines().map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect()
        };
        let (learned, tested) = (values(&train), values(&test));
        let mean = learned.iter().sum::<f64>() / learned.len() as f64;
        let squares: f64 = tested.iter().map(|x| (x - mean).powi(2)).sum();
        let rmse = (squares / tested.len() as f64).sqrt();
        let mean = format!("is worse than {rmse:.4}, that of always predicting the mean");
        let small = ["--train", &train, "--test", &test, "--rank", "8", "--passes", "12"];
        // Factors stay where they begin.
        warns(name, &small, &["--rate", "1e-12"], &["test RMSE", &mean, "another --rate"]);
    }
}

#[test]
fn losses_of_classes_are_compared_with_guessing() {
    let small = ["--rows", "2000", "--passes", "3"];
    let says =
        ["test loss", "0.6931", "a model that learns nothing", "smaller --rate", "--rule ada-revision"];
    warns("sparse_lr", &small, &["--rule", "sgd", "--rate", "100"], &says);
    // Steps of `word2vec` that are too long end in errors; what its constant means is seen without steps. Its kernel looks
    // losses up in a table, which has 0.690 for a product of zero.
    let small = ["--quiet", "--sentences", "200", "--words", "300", "--dimension", "8", "--passes", "1"];
    for rate in ["1e-12", "0.1"] {
        let output = program("word2vec", &[&small[..], &["--serial", "--rate", rate]].concat());
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said.contains("training loss 0.69"), rate == "1e-12", "{said}");
        assert!(output.stderr.is_empty());
    }
}

#[test]
fn topics_are_compared_with_guessing_among_all_words() {
    let small = ["--documents", "150", "--words", "400", "--length", "60", "--passes", "3"];
    let says = ["held-out perplexity", "400.0000", "guessing among all words", "--passes"];
    warns("lda", &small, &["--beta", "1e-9", "--alpha", "1e-9"], &says);
}
