//! Models that the examples save and load as several processes: once, by the first of them.
use crate::common::{Daemon, Host, example};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Output;

/// A host with a folder of data, on which programs run as two processes.
struct Two {
    host: Host,
    _daemon: Daemon,
}

impl Two {
    fn new() -> Two {
        let host = Host::new();
        let daemon = host.daemon("");
        Two { host, _daemon: daemon }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.host.top.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Words of `args` that begin with `@` are files of the folder.
    fn output(&self, name: &str, args: &str) -> Output {
        let mut command = self.host.command(env!("CARGO_BIN_EXE_hectare"));
        command.args(["run", "-n", "2", "--"]).arg(example(name));
        for arg in args.split(' ') {
            match arg.strip_prefix('@') {
                Some(file) => command.arg(self.path(file)),
                None => command.arg(arg),
            };
        }
        command.output().unwrap()
    }

    /// The output of a program that ends well.
    fn says(&self, name: &str, args: &str) -> String {
        let output = self.output(name, args);
        let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(output.status.success(), "{name} {args}: {out}{err}");
        out
    }
}

/// Entries of `N` indices.
fn entries<const N: usize>() -> String {
    let mut text = String::new();
    for n in 0..2000u32 {
        let key: [u32; N] =
            std::array::from_fn(|dim| n * [7919, 104_729, 1_299_709][dim] % [60, 41, 13][dim]);
        key.iter().for_each(|index| write!(text, "{index} ").unwrap());
        writeln!(text, "{}", 1 + key.iter().sum::<u32>() % 5).unwrap();
    }
    text
}

#[test]
fn factors_are_saved_and_loaded_by_two_processes() {
    let two = Two::new();
    for (name, data) in [("factorize", entries::<2>()), ("tensor", entries::<3>())] {
        two.write("data", &data);
        let model = format!("@{name}.model");
        let learn = format!("--train @data --test @data --rank 8 --passes 2 --save {model}");
        two.says(name, &learn);
        two.says(name, &format!("{learn} --load {model}"));
        two.says(name, &format!("{learn} --load {model} --serial"));
        let predict = format!("--load {model} --rank 8 --test @data --predict @{name}.list");
        let said = two.says(name, &predict);
        assert_eq!(said.matches("2000 predictions").count(), 1, "{said}");
        let list = std::fs::read_to_string(two.path(&format!("{name}.list"))).unwrap();
        assert_eq!(list.lines().count(), 2000);
    }
}

#[test]
fn topics_are_saved_loaded_and_gone_on_with_by_two_processes() {
    let two = Two::new();
    let text: String = (0..60u32)
        .map(|n| {
            format!(
                "sea ship sail wave {} garden rose lily acorn maple birch\n",
                ["port", "tree"][n as usize % 2]
            )
        })
        .collect();
    two.write("text", &text);
    let learn = "--text @text --lines --topics 2 --passes 3 --min-count 1 --skip-top 0 --save @model";
    two.says("lda", learn);
    two.says(
        "lda",
        "--text @text --lines --min-count 1 --skip-top 0 --passes 2 --load @model --save @shares",
    );
    let said = two.says(
        "lda",
        "--text @text --lines --min-count 1 --skip-top 0 --passes 2 --load @model --go-on --save @model",
    );
    assert!(said.contains("going on after pass 3"), "{said}");
}

#[test]
fn centers_are_saved_and_loaded_by_two_processes() {
    let two = Two::new();
    for way in ["", " --serial"] {
        two.says("kmeans", &format!("--count 500 --clusters 5 --passes 2 --save @centers.npy{way}"));
        two.says("kmeans", &format!("--count 500 --clusters 5 --passes 2 --load @centers.npy{way}"));
    }
}
