//! Programs of the loop layer, unchanged, on three hosts: the same passes as on threads of one, to the last bit.
mod deaths;
mod inspected;
mod nests;
#[path = "../../../orion-layer/tests/common/mod.rs"]
mod oracle;
mod program;
mod saves;
mod stencils;
mod turns;

use crate::common::cluster::{Cluster, Running};
use crate::common::example;
use hectare_hosts::Settings;
use hectare_orion::array::text::whitespace;
use hectare_orion::relax::{Consistency, Every};
use hectare_orion::{Context, Error, Rebalance, Result, parallel_for};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names what the processes of a run do.
const ROLE: &str = "LOOPS_ROLE";
/// A file for them.
const FILE: &str = "LOOPS_FILE";
/// The arrays of the role that counts bytes.
const USERS: usize = 3000;
const FILMS: usize = 1200;
const RANK: usize = 100;

/// The lines about passes, without the times.
fn passes(text: &str) -> Vec<String> {
    let of_a_pass = text.lines().filter_map(|line| line.find("pass ").map(|at| &line[at..]));
    // The last line has the number of workers in front, others what is learned and, behind two spaces, the time.
    of_a_pass.map(|line| line.rsplit_once("  ").map_or(line, |(all, _)| all).to_owned()).collect()
}

/// Compares a program's results on as many threads with those on three hosts.
fn compare(cluster: &Cluster, program: &str, per_host: u32, arguments: &str, expected: usize) {
    let path = example(program);
    let workers = 3 * per_host;
    let mut threads = Command::new("sh");
    threads.args(["-c", &format!("exec {} --workers {workers} {arguments}", path.display())]);
    let threads = threads.output().unwrap();
    let on_threads = passes(&String::from_utf8_lossy(&threads.stdout));
    assert_eq!(on_threads.len(), expected, "{threads:?}");
    let script = format!("exec {} --workers {workers} {arguments}", path.display());
    let said = cluster.run(&["--hosts", &cluster.list(per_host), "--timeout", "60"], &script);
    assert_eq!(said.code, 0, "{program}, {per_host} on each host: {said:?}");
    assert_eq!(passes(&said.out), on_threads, "{program}, {per_host} on each host: {said:?}");
}

fn ratings(path: &Path) {
    let line = |n: u32| {
        let (i, j) = (n * 7919 % 200, n * 104_729 % 131);
        format!("{i} {j} {}\n", 1 + (i * j + i + 3 * j) % 5)
    };
    std::fs::write(path, (0..4000).map(line).collect::<String>()).unwrap();
}

#[test]
fn factorize_learns_on_three_hosts_what_it_learns_on_one() {
    let Some(cluster) = Cluster::new(3) else { return };
    let data = cluster.top.path().join("ratings");
    ratings(&data);
    let data = data.display();
    let arguments = format!("--passes 3 --rank 8 --train {data} --test {data}");
    compare(&cluster, "factorize", 1, &arguments, 3);
    compare(&cluster, "factorize", 2, &arguments, 3);
    cluster.assert_nothing_is_left();
}

/// A program of random seeds: what it prints.
type Program = fn(&mut Context<'_>, Range<u64>) -> Result<Vec<String>>;

/// All of them, by their roles.
const RANDOM: [(&str, Program); 3] =
    [("stencils", stencils::all), ("nests", nests::all), ("turns", turns::all)];

/// A number for many: a line of output has an end.
fn hash(words: impl IntoIterator<Item = u64>) -> u64 {
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    words.into_iter().fold(1, mix)
}

/// The seeds of a random program: those that a variable names, or the usual ones.
fn seeds_of(variable: &str, usual: Range<u64>) -> Range<u64> {
    let Ok(given) = std::env::var(variable) else { return usual };
    let (first, last) = given.split_once("..").unwrap();
    first.parse().unwrap()..last.parse().unwrap()
}

/// The program of each process of a run: one worker, on one of three hosts.
fn act(w: &mut Context<'_>, role: &str, file: &Path) -> Result<()> {
    // Programs of random seeds: a word, and the first seed and the one after the last.
    if let [kind, first, last] = role.split(' ').collect::<Vec<_>>()[..]
        && let Some((_, program)) = RANDOM.iter().find(|(name, _)| *name == kind)
    {
        for line in program(w, first.parse().unwrap()..last.parse().unwrap())? {
            println!("{line}");
        }
        return Ok(());
    }
    match role {
        "all" => {
            for line in program::all(w, file)? {
                println!("{line}");
            }
        }
        // In the middle of a rotation, while others wait for parts of it.
        "panics between" => {
            let ratings = w.entries([40, 30], 900, |k| ([k * 7 % 40, k * 11 % 30], k))?.named("ratings");
            let mut users = w.zeros::<f32, 1>([40])?.named("users");
            let mut films = w.zeros::<f32, 1>([30])?.named("films");
            for pass in 0..3 {
                let failed = parallel_for!(w, unordered, read ratings, write [users, films];
                for ((user, film), k) in ratings {
                    assert!(pass != 1 || *k != 450, "an accident");
                    users[user] += 1.0;
                    films[film] += 1.0;
                });
                match (pass, failed) {
                    (0, done) => done?,
                    (1, failed) => println!("failed: {}", failed.unwrap_err()),
                    (_, refused) => println!("poisoned: {}", refused.unwrap_err()),
                }
            }
            println!("afterwards {:?}", w.fill([3], 7u8)?.to_vec(w)?);
        }
        "explains" => {
            let ratings = w.entries([40, 30], 900, |k| ([k * 7 % 40, k * 11 % 30], k))?.named("ratings");
            let mut users = w.zeros::<f32, 2>([40, 4])?.named("users");
            let mut films = w.zeros::<f32, 2>([30, 4])?.named("films");
            for _ in 0..3 {
                parallel_for!(w, unordered, read ratings, write [users, films];
                for ((user, film), k) in ratings {
                    users.row_mut(user)[0] += *k as f32;
                    films.row_mut(film)[0] += 1.0;
                })?;
            }
            println!("{}", w.explain());
        }
        "inspected" => inspected::all(w)?.iter().for_each(|line| println!("{line}")),
        "stencil counts" => stencils::count(w)?,
        "reads late" => {
            let mut a = w.zeros::<u32, 1>([1000])?.named("a");
            for pass in 1..=5 {
                parallel_for!(w, unordered, write a; for i in 0..1000 { a[i] = pass * i as u32; })?;
                if w.rank() % 2 == 1 {
                    std::thread::sleep(std::time::Duration::from_millis(400));
                }
                let known: Vec<u32> = (0..1000).map(|i| pass * i).collect();
                assert!(a.to_vec(w)? == known, "worker {} in pass {pass}", w.rank());
            }
            println!("read 5 times");
        }
        "counts" => {
            let ratings = w.entries([USERS, FILMS], 9000, |k| ([k * 7 % USERS, k * 11 % FILMS], k))?;
            let mut users = w.zeros::<f32, 2>([USERS, RANK])?;
            let mut films = w.zeros::<f32, 2>([FILMS, RANK])?;
            for _ in 0..17 {
                parallel_for!(w, unordered, read ratings, write [users, films];
                for ((user, film), k) in ratings {
                    users.row_mut(user)[0] += *k as f32;
                    films.row_mut(film)[0] += 1.0;
                })?;
            }
            let between = w.explain().iter().find_map(|one| one.between_hosts.clone());
            for link in between.into_iter().flat_map(|between| between.links) {
                let measured = link.measured.map_or(-1.0, f64::round);
                println!("bytes {} {} {} {measured}", link.from, link.to, link.predicted);
            }
        }
        "reads" => {
            // Each host has a file of its own by this name, all of one length.
            let own = PathBuf::from(format!("{}.{}", file.display(), w.rank()));
            std::fs::write(&own, "0 0 5\n1 1 3\n2 2 4\n".repeat(3000)).unwrap();
            if w.rank() == 2 {
                std::fs::write(&own, "0 0 5\n1 1 3\n2 2 1\n".repeat(3000)).unwrap();
            }
            let read = w.text_file::<f32, 2>(&own, whitespace);
            println!("refused: {}", read.unwrap_err());
            if w.rank() == 1 {
                std::fs::remove_file(&own).unwrap();
            }
            println!("lacks: {}", w.text_file::<f32, 2>(&own, whitespace).unwrap_err());
        }
        "saves" => saves::save(w, file)?,
        "fails to save" => saves::fail(w, file)?,
        "opens" => saves::print(w, file)?,
        "rebalances" => {
            println!("refused: {}", w.rebalance(Rebalance::by_time()).unwrap_err());
            w.rebalance(Rebalance::never())?;
        }
        "panics relaxed" => {
            for consistency in [Consistency::Bsp, Consistency::Async] {
                let mut a = w.zeros::<f32, 1>([90])?.named("a");
                for pass in 0..2 {
                    let failed = parallel_for!(w, unordered, relax a, consistency = consistency;
                    for i in 0..90 {
                        assert!(pass == 0 || i != 70, "an accident");
                        a.add(i, 1.0);
                    });
                    match pass {
                        0 => failed?,
                        _ => println!("failed: {}", failed.unwrap_err()),
                    }
                }
                println!("poisoned: {}", a.to_vec(w).unwrap_err());
            }
            println!("afterwards {:?}", w.fill([3], 7u8)?.to_vec(w)?);
        }
        "panics" => {
            let mut a = w.zeros::<u64, 1>([90])?.named("a");
            let failed = parallel_for!(w, unordered, write a;
            for i in 0..90 {
                assert!(i != 70, "an accident");
                a[i] = i as u64;
            });
            println!("failed: {}", failed.unwrap_err());
            println!("poisoned: {}", a.to_vec(w).unwrap_err());
            // The program can go on.
            println!("afterwards {:?}", w.fill([3], 7u8)?.to_vec(w)?);
        }
        "fails" if w.rank() == 2 => return Err(Error::Invalid("no data on this host".into())),
        "fails" => {
            println!("told: {}", w.barrier().unwrap_err());
        }
        "ends early" if w.rank() == 1 => {}
        "ends early" => {
            println!("told: {}", w.zeros::<f32, 1>([5]).unwrap_err());
        }
        "differs" => {
            let made = match w.rank() {
                2 => w.zeros::<f32, 1>([5]).map(drop),
                _ => w.barrier(),
            };
            println!("told: {}", made.unwrap_err());
        }
        // A loop that panics on the last worker, in a program that returns the error, or panics of it.
        "returns" | "unwraps" => {
            let mut a = w.zeros::<u64, 1>([90])?.named("a");
            let last = 90 - 1;
            let failed = parallel_for!(w, unordered, write a;
            for i in 0..90 {
                assert!(i != last, "an accident");
                a[i] = i as u64;
            });
            match role {
                "returns" => failed?,
                _ => failed.unwrap(),
            }
        }
        place if place.starts_with("dies after ") => {
            return deaths::die_anywhere(w, &place["dies after ".len()..], file);
        }
        place if place.starts_with("dies ") => return deaths::die(w, place),
        passes => return go_on(w, passes.parse().unwrap()),
    }
    Ok(())
}

#[test]
fn role() {
    if let Ok(role) = std::env::var(ROLE) {
        let file = PathBuf::from(std::env::var_os(FILE).unwrap());
        if let Err(error) = hectare_orion::run(1, |w| act(w, &role, &file)) {
            println!("ended: {error}");
            if role == "returns" {
                std::process::exit(1);
            }
        }
    }
}

/// The command of a process that plays a role.
fn script(cluster: &Cluster, role: &str) -> String {
    format!(
        "{ROLE}='{role}' {FILE}={} exec {} --exact loops_on_hosts::role --nocapture",
        cluster.top.path().join("checkpoint").display(),
        std::env::current_exe().unwrap().display(),
    )
}

/// Runs a role with so many workers on each host of the cluster; what they print.
fn run(cluster: &Cluster, role: &str, per_host: u32) -> String {
    let script = script(cluster, role);
    let said = cluster.run(&["--hosts", &cluster.list(per_host), "--timeout", "60"], &script);
    assert_eq!(said.code, 0, "{role}: {said:?}");
    said.out
}

#[test]
fn loops_of_every_kind_have_the_bits_of_one_host() {
    let Some(cluster) = Cluster::new(3) else { return };
    for per_host in [1, 2] {
        let file = cluster.top.path().join("of one host");
        let workers = 3 * per_host as usize;
        let on_threads = hectare_orion::run(workers, |w| program::all(w, &file)).unwrap();
        assert!(on_threads.iter().all(|lines| *lines == on_threads[0]));
        let said = run(&cluster, "all", per_host);
        // Threads share arrays in place under `Async`, and may lose changes; hosts do not. What threads serve has the changes of its only
        // user at once; what hosts serve has them at the next clock, as what is buffered has.
        let differs = |line: &&String| line.starts_with("async ") || line.starts_with("served ");
        let known = on_threads[0].iter().filter(|line| !differs(line));
        let of = |kind: &str| known.clone().find_map(|line| line.strip_prefix(kind)).unwrap();
        let others = [format!("async {}", of("bounded ")), format!("served {}", of("contributed "))];
        for line in known.cloned().chain(others) {
            let kind = line.split(' ').next().unwrap();
            assert_eq!(said.matches(line.as_str()).count(), workers, "{kind}, {per_host} on each host");
        }
    }
    // Checked loops, which run in another order, report their findings on all hosts.
    let list = cluster.list(1);
    let args = ["--hosts", &list, "--timeout", "60", "-x", "HECTARE_CHECK=1"];
    let said = cluster.run(&args, &script(&cluster, "all"));
    assert_eq!(said.code, 0, "checked: {said:?}");
    let lines = said.out.lines().filter_map(|line| line.split_once("] ")).map(|(_, line)| line);
    let rotation: Vec<&str> = lines.filter(|line| line.starts_with("rotation ")).collect();
    assert!(rotation.len() == 3 && rotation.iter().all(|line| *line == rotation[0]), "{rotation:?}");
    cluster.assert_nothing_is_left();
}

/// `STENCIL_SEEDS=100..200` runs other random programs than the first two.
#[test]
fn neighbours_on_other_hosts_are_read_as_on_one() {
    let Some(cluster) = Cluster::new(3) else { return };
    let seeds = seeds_of("STENCIL_SEEDS", 1..3);
    let role = format!("stencils {} {}", seeds.start, seeds.end);
    for per_host in [1, 2] {
        let on_threads =
            hectare_orion::run(3 * per_host as usize, |w| stencils::all(w, seeds.clone())).unwrap();
        let said = run(&cluster, &role, per_host);
        assert!(said.contains("with ghosts: 3"), "{said}");
        for line in &on_threads[0] {
            let kind = line.split(' ').next().unwrap();
            let count = said.matches(line.as_str()).count();
            assert_eq!(count, on_threads.len(), "{kind}, {per_host} on each host: {said}");
        }
    }
    // Checked loops have all of their arrays on one worker, and go back.
    let args = ["--hosts", &cluster.list(1), "--timeout", "60", "-x", "HECTARE_CHECK=1"];
    let said = cluster.run(&args, &script(&cluster, &role));
    assert_eq!((said.code, said.out.contains("ended: ")), (0, false), "{said:?}");
    cluster.assert_nothing_is_left();
}

/// What a random program prints on threads, three hosts print as well.
fn compare_seeds(role: &str, program: Program, seeds: Range<u64>) {
    let Some(cluster) = Cluster::new(3) else { return };
    for per_host in [1, 2] {
        let workers = 3 * per_host as usize;
        let on_threads = hectare_orion::run(workers, |w| program(w, seeds.clone())).unwrap();
        let said = run(&cluster, &format!("{role} {} {}", seeds.start, seeds.end), per_host);
        for line in &on_threads[0] {
            let (place, _) = line.rsplit_once(' ').unwrap();
            let of_place = || said.lines().filter(|other| other.contains(place)).collect::<Vec<_>>();
            let count = said.matches(line.as_str()).count();
            assert_eq!(count, workers, "{line}, {per_host} on each host: {:#?}", of_place());
        }
    }
    cluster.assert_nothing_is_left();
}

/// `NEST_SEEDS=100..200` runs others than the first.
#[test]
fn random_loops_leave_what_they_leave_on_one_host() {
    compare_seeds("nests", nests::all, seeds_of("NEST_SEEDS", 0..40));
}

/// `TURN_SEEDS=100..200` runs others than the first.
#[test]
fn loops_after_loops_leave_what_they_leave_on_one_host() {
    compare_seeds("turns", turns::all, seeds_of("TURN_SEEDS", 0..8));
}

#[test]
fn subscripts_from_data_are_inspected_as_on_one_host() {
    let Some(cluster) = Cluster::new(3) else { return };
    for per_host in [1, 2] {
        let on_threads = hectare_orion::run(3 * per_host as usize, inspected::all).unwrap();
        assert!(on_threads[0].iter().any(|line| line.starts_with("unordered batches")), "{on_threads:?}");
        let said = run(&cluster, "inspected", per_host);
        for line in &on_threads[0] {
            let kind = line.split(' ').next().unwrap();
            let count = said.matches(line.as_str()).count();
            assert_eq!(count, on_threads.len(), "{kind}, {per_host} on each host: {said}\n{line}");
        }
    }
    cluster.assert_nothing_is_left();
}

/// Two rows cross each link between neighbours in a sweep, and nothing else.
#[test]
fn a_stencil_sends_the_rows_that_are_read() {
    let Some(cluster) = Cluster::with(3, &Settings { mtu: 9000, ..Settings::default() }) else { return };
    let said = run(&cluster, "stencil counts", 1);
    let must = (2 * stencils::WIDE * size_of::<f32>()) as f64;
    let mut counted = 0;
    for line in said.lines().filter_map(|line| line.split_once("bytes ")) {
        let figures: Vec<f64> = line.1.split(' ').map(|figure| figure.parse().unwrap()).collect();
        let [from, to, predicted, measured] = figures[..] else { panic!("{said}") };
        let is_next = from - to != 2.0 && to - from != 2.0;
        let (least, most) = if is_next { (1.0, 1.06) } else { (0.0, 0.05) };
        assert_eq!(predicted, if is_next { must } else { 0.0 }, "{said}");
        if measured >= 0.0 {
            counted += 1;
            let times = measured / must;
            assert!(
                (least..most).contains(&times),
                "{times} of the rows from host {from} to host {to}: {said}"
            );
        }
    }
    // Two loops on each of three hosts, whose first worker asks its agent, of four links each.
    assert_eq!(counted, 24, "{said}");
    cluster.assert_nothing_is_left();
}

/// Films go around three hosts: each row crosses each link of the ring once in a pass, and nothing else has to cross.
#[test]
fn parts_cross_links_as_often_as_they_must() {
    let Some(cluster) = Cluster::with(3, &Settings { mtu: 9000, ..Settings::default() }) else { return };
    let said = run(&cluster, "counts", 1);
    let must = (FILMS * RANK * size_of::<f32>()) as f64;
    let mut counted = 0;
    for line in said.lines().filter_map(|line| line.split_once("bytes ")) {
        let figures: Vec<f64> = line.1.split(' ').map(|figure| figure.parse().unwrap()).collect();
        let [from, to, predicted, measured] = figures[..] else { panic!("{said}") };
        let is_next = (from + 2.0) % 3.0 == to;
        assert_eq!(predicted, if is_next { must } else { 0.0 }, "{said}");
        // Each host's first worker asks its agent.
        if measured >= 0.0 {
            counted += 1;
            let most = if is_next { 1.05 * must } else { 0.05 * must };
            assert!(
                measured < most,
                "{measured} bytes from host {from} to host {to}, where {predicted} have to go"
            );
            assert!(!is_next || measured > must, "{said}");
        }
    }
    assert_eq!(counted, 12, "{said}");
    cluster.assert_nothing_is_left();
}

#[test]
fn what_goes_wrong_on_one_host_is_told_on_all() {
    let Some(cluster) = Cluster::new(3) else { return };
    // How many workers print a line that begins so, with all the parts in it.
    let told = |said: &str, count: usize, head: &str, parts: &[&str]| {
        let lines = said.lines().filter_map(|line| line.split_once("] ")).map(|(_, line)| line);
        let fits = |line: &&str| line.starts_with(head) && parts.iter().all(|part| line.contains(part));
        assert_eq!(lines.filter(fits).count(), count, "{head}{parts:?}\n{said}");
    };
    // Each of 480 bytes of films is handed over twice, and goes back to where it begins.
    let handed = "960 bytes for parts that change hands, 480 bytes for those that go back to where it begins, 0 bytes for what is read of other hosts";
    let said = run(&cluster, "explains", 1);
    told(&said, 3, "  Between 3 hosts, a pass: ", &[handed]);
    // Agents count what goes to and from their own hosts.
    for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)] {
        let link = format!("    - from host {from} to host {to}: ");
        told(&said, 3, &link, &["predicted"]);
        told(&said, 2, &link, &["predicted", "measured"]);
    }
    told(
        &said,
        3,
        "    Measured before the loop was planned: a barrier ",
        &["a hand-over", "Gbit/s from each host"],
    );
    let said = run(&cluster, "panics relaxed", 1);
    told(&said, 6, "failed: ", &["worker 2", "i = 70", "an accident"]);
    told(&said, 6, "poisoned: ", &["array \"a\""]);
    told(&said, 3, "afterwards [7, 7, 7]", &[]);
    let said = run(&cluster, "panics", 1);
    told(&said, 3, "failed: ", &["worker 2", "i = 70", "an accident"]);
    told(&said, 3, "poisoned: ", &["array \"a\""]);
    told(&said, 3, "afterwards [7, 7, 7]", &[]);
    let named = |host: usize| {
        format!("worker {host} (host {} ({}:", cluster.name(host), cluster.network.address(host))
    };
    let said = run(&cluster, "reads", 1);
    told(&said, 3, "refused: ", &[&named(0), &named(2), "different files of 54000 bytes"]);
    told(&said, 3, "lacks: ", &[&named(1), "cannot read it, as worker 0", "No such file"]);
    let said = run(&cluster, "rebalances", 1);
    told(&said, 3, "refused: ", &["Context::rebalance: on several hosts bounds stay"]);
    let said = run(&cluster, "panics between", 1);
    told(&said, 3, "failed: ", &["an accident"]);
    told(&said, 3, "poisoned: ", &["left half written"]);
    told(&said, 3, "afterwards [7, 7, 7]", &[]);
    let said = run(&cluster, "fails", 1);
    told(&said, 2, "told: ", &["worker 2", "no data on this host"]);
    told(&said, 1, "ended: ", &["no data on this host"]);
    told(&run(&cluster, "ends early", 1), 2, "told: ", &["the end of its program"]);
    told(&run(&cluster, "differs", 1), 3, "told: ", &["loops_on_hosts"]);
    cluster.assert_nothing_is_left();
}

#[test]
fn applications_learn_on_three_hosts_what_they_learn_on_one() {
    let Some(cluster) = Cluster::new(3) else { return };
    compare(&cluster, "tensor", 1, "--passes 2 --rank 4", 2);
    compare(&cluster, "kmeans", 1, "--count 600 --columns 4 --clusters 5 --passes 3", 3);
    let batches = "--count 600 --columns 4 --clusters 5 --passes 2 --batch 90 --consistency bsp";
    compare(&cluster, "kmeans", 1, batches, 2);
    let topics = "--documents 90 --words 200 --topics 5 --passes 2 --show 0";
    compare(&cluster, "lda", 1, topics, 2);
    compare(&cluster, "lda", 1, &format!("{topics} --sampler gibbs --consistency bsp"), 2);
    let words = "--sentences 200 --words 150 --dimension 8 --passes 2 --consistency bsp";
    compare(&cluster, "word2vec", 1, words, 2);
    compare(&cluster, "sparse_lr", 1, "--rows 600 --passes 2 --consistency bsp", 2);
    compare(&cluster, "gbt", 1, "--rows 600 --trees 3 --depth 4", 3);
    compare(&cluster, "lasso", 1, "--rows 200 --features 60 --lambda 0.2 --passes 2", 2);
    cluster.assert_nothing_is_left();
}

/// Passes of loops with hand-overs, with clocks and with neighbours, as long as agents are killed; what is left is known.
fn go_on(w: &mut Context<'_>, passes: usize) -> Result<()> {
    let entries = w.entries([24, 18], 24 * 18, |k| ([k / 18, k % 18], 1u8))?;
    let mut rows = w.zeros::<f32, 1>([24])?.named("rows");
    let mut columns = w.zeros::<f32, 1>([18])?.named("columns");
    let mut sums = w.zeros::<f32, 1>([10])?.named("sums");
    let mut neighbours = stencils::Known::new(w)?;
    for pass in 1..=passes {
        parallel_for!(w, unordered, read entries, write [rows, columns];
        for ((row, column), _one) in entries {
            rows[row] += 1.0;
            columns[column] += 1.0;
        })?;
        parallel_for!(w, unordered, relax sums, consistency = Consistency::Bsp, every = Every::PerPass(2);
        for i in 0..60 {
            sums.add(i % 10, 1.0);
        })?;
        neighbours.go_on(w)?;
        assert_eq!(rows.to_vec(w)?, vec![18.0 * pass as f32; 24]);
        assert_eq!(columns.to_vec(w)?, vec![24.0 * pass as f32; 18]);
        assert_eq!(sums.to_vec(w)?, vec![6.0 * pass as f32; 10]);
        w.root(|| println!("pass {pass}"));
    }
    println!("done: {}", w.rank());
    Ok(())
}

#[test]
fn loops_go_on_when_agents_are_killed() {
    let Some(cluster) = Cluster::new(3) else { return };
    let script = script(&cluster, "40");
    let mut running =
        Running::start(cluster.command(&["--hosts", &cluster.list(1), "--timeout", "20"], &script));
    for kill in 0..6 {
        running.lines(5);
        cluster.kill_agent(kill % 3);
    }
    let mut done = 0;
    while done < 3 {
        done += usize::from(running.lines(1)[0].contains("done: "));
    }
    assert_eq!(running.end(), Some(0), "{}", running.said());
    cluster.assert_nothing_is_left();
}

/// One of two workers of a host is late: rounds go on without it, and bring what the other has asked for. It reads the same.
#[test]
fn who_reads_late_reads_what_the_others_do() {
    let Some(cluster) = Cluster::new(2) else { return };
    let said = run(&cluster, "reads late", 2);
    assert_eq!(said.matches("read 5 times").count(), 4, "{said}");
    cluster.assert_nothing_is_left();
}
