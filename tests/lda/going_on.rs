//! Learning that goes on from a folder of `--save`.
use crate::common::program::{program, refuses};
use std::fs;
use std::path::{Path, PathBuf};

const SMALL: [&str; 9] =
    ["--documents", "150", "--words", "400", "--length", "60", "--show", "0", "--skip-top=0"];

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("hectare-lda-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs the program on generated documents; what it says.
fn learn(save: &Path, args: &[&str]) -> String {
    let output = program("lda", &[&SMALL[..], args, &["--save", save.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The perplexity after the last pass.
fn perplexity(said: &str) -> f64 {
    let line = said.lines().rfind(|line| line.starts_with("pass ")).unwrap();
    line.split("held-out perplexity").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap()
}

fn files(folder: &Path) -> Vec<Vec<u8>> {
    let names = ["topics.npy", "documents.npy", "tokens.npy", "training.json"];
    names.map(|name| fs::read(folder.join(name)).unwrap()).into()
}

#[test]
fn what_goes_on_ends_with_the_bits_of_a_run_that_never_stopped() {
    let folder = folder("bits");
    let (whole, half, rest) = (folder.join("whole"), folder.join("half"), folder.join("rest"));
    let priors = ["--topics", "12", "--alpha", "0.2", "--beta", "0.02"];
    let gibbs = ["--sampler", "gibbs", "--serial"];
    for (sampler, first, second) in [
        // On another number of workers, and by the twin.
        (&[][..], &["--workers", "2"][..], &["--workers", "3"][..]),
        (&[][..], &["--workers", "1"][..], &["--serial"][..]),
        (&gibbs[..2], &gibbs[2..], &gibbs[2..]),
    ] {
        let all = learn(&whole, &[&priors[..], sampler, first, &["--passes", "9"]].concat());
        learn(&half, &[&priors[..], sampler, first, &["--passes", "4"]].concat());
        // Sampler, topics and priors need not be told again.
        let load = ["--load", half.to_str().unwrap(), "--go-on"];
        let said = learn(&rest, &[&load[..], second, &["--passes", "5"]].concat());
        assert!(said.contains("going on after pass 4") && said.contains("after 9 passes"), "{said}");
        assert!((perplexity(&said) / perplexity(&all) - 1.0).abs() < 1e-6, "{said}{all}");
        assert!(files(&rest) == files(&whole), "{sampler:?} {second:?}");
        assert!(files(&half) != files(&whole));
        // In place, too.
        learn(&half, &[&load[..], second, &["--passes", "5"]].concat());
        assert!(files(&half) == files(&whole), "{sampler:?} {second:?}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn gibbs_sampling_on_workers_goes_on_where_it_stopped() {
    let folder = folder("gibbs");
    let (half, rest) = (folder.join("half"), folder.join("rest"));
    let args = ["--sampler", "gibbs", "--workers", "2", "--topics", "12"];
    let before = perplexity(&learn(&half, &[&args[..], &["--passes", "40"]].concat()));
    let fresh = perplexity(&learn(&rest, &[&args[..], &["--passes", "1"]].concat()));
    let load = ["--load", half.to_str().unwrap(), "--go-on", "--workers", "2"];
    let after = perplexity(&learn(&rest, &[&load[..], &["--passes", "1"]].concat()));
    assert!((after / before - 1.0).abs() < 0.1 && after < 0.8 * fresh, "{before} {after} {fresh}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn other_documents_begin_with_the_topics_that_are_known() {
    let folder = folder("others");
    let (known, new) = (folder.join("known"), folder.join("new"));
    learn(&known, &["--topics", "12", "--workers", "2", "--passes", "100"]);
    let load = ["--load", known.to_str().unwrap(), "--go-on", "--workers", "2"];
    // More of them, of which the words are others in part.
    let more = ["--documents", "200", "--words", "420", "--passes", "2"];
    let begun = learn(&new, &[&load[..], &more].concat());
    let fresh = learn(&new, &[&["--topics", "12", "--workers", "2"][..], &more].concat());
    assert!(begun.contains("other documents") && begun.contains("after 2 passes"), "{begun}");
    assert!(perplexity(&begun) < 0.9 * perplexity(&fresh), "{begun}{fresh}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_folder_that_is_damaged_is_refused() {
    let folder = folder("damaged");
    let model = folder.join("model");
    learn(&model, &["--topics", "3", "--workers", "1", "--passes", "1"]);
    let load = ["--load", model.to_str().unwrap(), "--go-on"];
    let args = [&SMALL[..], &load].concat();
    let other_seed = [&args[..], &["--seed", "2"]].concat();
    // Generated documents depend on no seed: they are the same.
    refuses("lda", &[(&other_seed, "were learned with --seed 1")]);
    let tokens = fs::read(model.join("tokens.npy")).unwrap();
    let mut wrong = tokens.clone();
    *wrong.last_mut().unwrap() = 1;
    fs::write(model.join("tokens.npy"), &wrong).unwrap();
    refuses("lda", &[(&args, "tokens.npy: a topic")]);
    fs::write(model.join("tokens.npy"), &tokens[..tokens.len() - 2]).unwrap();
    refuses("lda", &[(&args, "tokens.npy")]);
    fs::write(model.join("training.json"), "{}").unwrap();
    refuses("lda", &[(&args, "training.json: this is not what --save wrote")]);
    fs::remove_file(model.join("training.json")).unwrap();
    refuses("lda", &[(&args, "cannot read")]);
    fs::remove_dir_all(&folder).unwrap();
}
