//! Files that programs read in each process, of hosts with disks of their own.
use crate::common::cluster::Cluster;
use crate::common::example;

#[test]
fn files_that_differ_between_hosts_are_refused() {
    let Some(cluster) = Cluster::new(2) else { return };
    let rows =
        |label: u32| (0..40u32).map(|n| format!("{} {}:1\n", (n + label) % 2, 1 + n % 3)).collect::<String>();
    let text =
        |word: &str| format!("sea ship sail wave port tree {word} rose lily acorn maple birch\n").repeat(60);
    let shared = cluster.top.path().join("rows");
    std::fs::write(&shared, rows(0)).unwrap();
    for (host, (label, word)) in [(0, "moon"), (1, "star")].into_iter().enumerate() {
        std::fs::write(cluster.home(host).join("rows"), rows(label)).unwrap();
        std::fs::write(cluster.home(host).join("text"), text(word)).unwrap();
        let trees = |args: &[&str]| {
            let model = cluster.home(host).join(args[0]);
            let mut command = std::process::Command::new(example(args[0]));
            command.args(&args[1..]).args(["--workers", "1", "--data"]).arg(cluster.home(host).join("rows"));
            let output = command.arg("--save").arg(model).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        };
        trees(&["gbt", "--trees", "1"]);
        trees(&["sparse_lr", "--passes", "1", "--test", shared.to_str().unwrap()]);
    }
    let rows = shared.display();
    for (name, args) in [
        ("lasso", "--data $HOME/rows".to_owned()),
        ("word2vec", "--text $HOME/text --lines --min-count 1 --passes 1".into()),
        ("lda", "--text $HOME/text --lines --min-count 1 --skip-top 0 --topics 2 --passes 1".into()),
        ("gbt", format!("--load $HOME/gbt --test {rows}")),
        ("sparse_lr", format!("--load $HOME/sparse_lr --test {rows}")),
    ] {
        let script = format!("exec {} {args}", example(name).display());
        let said = cluster.run(&["--hosts", &cluster.list(1), "--timeout", "20"], &script);
        let part = format!("worker 0 (host {} (", cluster.name(0));
        assert!(said.code != 0 && said.err.contains(&part), "{name}: {said:?}");
        assert!(said.err.contains("copy one to all hosts"), "{name}: {said:?}");
    }
    cluster.assert_nothing_is_left();
}
