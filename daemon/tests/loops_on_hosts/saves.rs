//! Checkpoints of programs on hosts whose disks are their own.
use super::run;
use crate::common::cluster::Cluster;
use hectare_orion::collections::Sum;
use hectare_orion::{Context, Result, parallel_for};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The place of a checkpoint in the folder of this worker's host.
fn own(w: &mut Context<'_>, file: &Path) -> PathBuf {
    let rank = w.rank();
    let host = w.worker().job().hosts().iter().position(|ranks| ranks.contains(&rank)).unwrap();
    let folder = file.with_extension(host.to_string());
    fs::create_dir_all(&folder).unwrap();
    folder.join("m.ckpt")
}

/// Saves arrays cut into rows and into columns, sparse ones, a map and a vector, twice; the last save is the one that counts.
pub(super) fn save(w: &mut Context<'_>, file: &Path) -> Result<()> {
    let file = &own(w, file);
    let mut rows = w.uniform([41, 3], 0.0..1.0f64, 7)?;
    let (mut users, mut films) = (w.zeros::<f32, 2>([40, 4])?, w.zeros::<f32, 2>([4, 30])?);
    let ratings = w.entries([40, 30], 900, |k| ([k * 7 % 40, k * 11 % 30], k as f32))?;
    // The loop may be too small for several workers; what no loop touches stays where it is.
    let untouched = w.entries([50, 60], 3000, |k| ([k % 50, k / 50], k as u32))?;
    let mut counts = w.dist_map::<String, u64, _>(Sum)?;
    let mut found = w.dist_vec::<u32>()?;
    counts.extend(w, (0..9).map(|k| (format!("word {k}"), k)))?;
    let rank = w.rank();
    found.extend(w, [rank, 50 + rank])?;
    for pass in 0..2 {
        parallel_for!(w, unordered, read ratings, write [users, films];
        for ((user, film), k) in ratings {
            users.row_mut(user)[0] += *k;
            films[[1, film]] += 1.0;
        })?;
        parallel_for!(w, unordered, write rows; for i in 0..41 { rows.row_mut(i)[1] += i as f64; })?;
        w.save_checkpoint(file, |c| {
            c.value("pass", &pass)?;
            c.array("rows", &rows)?;
            c.array("users", &users)?;
            c.array("films", &films)?;
            c.entries("ratings", &ratings)?;
            c.entries("untouched", &untouched)?;
            c.map("counts", &counts)?;
            c.vector("found", &found)
        })?;
    }
    let all =
        (rows.to_vec(w)?, users.to_vec(w)?, films.to_vec(w)?, (ratings.to_vec(w)?, untouched.to_vec(w)?));
    println!(
        "{}",
        line(&(1, all, (0..9u64).map(|k| (k * w.size() as u64).to_string()).collect(), found.to_vec(w)?))
    );
    Ok(())
}

/// A save whose file on the second host is gone before it is in its place, while those of the others are whole.
pub(super) fn fail(w: &mut Context<'_>, file: &Path) -> Result<()> {
    let file = own(w, file);
    let rows = w.uniform([41, 3], 0.0..1.0f64, 7)?;
    let loses = w.worker().job().host() == 1;
    let saved = w.save_checkpoint(&file, |c| {
        c.array("rows", &rows)?;
        for part in files(file.parent().unwrap()).iter().filter(|_| loses) {
            fs::remove_file(part).unwrap();
        }
        Ok(())
    });
    println!("refused: {}", saved.unwrap_err());
    Ok(())
}

type Dense = (Vec<f64>, Vec<f32>, Vec<f32>);
type All<E> = (i32, (Vec<f64>, Vec<f32>, Vec<f32>, E), Vec<String>, Vec<u32>);

fn line<E: std::fmt::Debug>(all: &All<E>) -> String {
    let mut hasher = DefaultHasher::new();
    format!("{all:?}").hash(&mut hasher);
    format!("has {} {:016x}", all.1.0.len(), hasher.finish())
}

/// Prints what a checkpoint has.
pub(super) fn print(w: &mut Context<'_>, file: &Path) -> Result<()> {
    let file = own(w, file);
    match read(w, &file) {
        Ok(text) => println!("{text}"),
        Err(error) => println!("refused: {error}"),
    }
    Ok(())
}

fn read(w: &mut Context<'_>, file: &Path) -> Result<String> {
    let Some(c) = w.open_checkpoint(file)? else { return Ok("none".into()) };
    let dense: Dense = (
        c.array::<f64, 2>(w, "rows")?.to_vec(w)?,
        c.array::<f32, 2>(w, "users")?.to_vec(w)?,
        c.array::<f32, 2>(w, "films")?.to_vec(w)?,
    );
    let ratings = c.entries::<f32, 2>(w, "ratings")?.to_vec(w)?;
    let untouched = c.entries::<u32, 2>(w, "untouched")?.to_vec(w)?;
    let counts = c.map::<String, u64, _>(w, "counts", Sum)?;
    let mut known = Vec::new();
    for k in 0..9 {
        known.push(counts.get(w, &format!("word {k}"))?.unwrap().to_string());
    }
    let found = c.vector::<u32>(w, "found")?.to_vec(w)?;
    Ok(line(&(c.value("pass")?, (dense.0, dense.1, dense.2, (ratings, untouched)), known, found)))
}

/// The files in the folder of a host.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The one line that all processes of a run printed.
fn said(cluster: &Cluster, role: &str, per_host: u32) -> String {
    let said = run(cluster, role, per_host);
    let from = |line: &str| {
        let start = ["has ", "refused: ", "none"].iter().find_map(|start| line.find(start))?;
        // Each host's folder has a name of its own.
        let folder = |text: String, host: usize| text.replace(&format!("checkpoint.{host}/"), "");
        Some((0..3).fold(line[start..].to_owned(), folder))
    };
    let lines: Vec<String> = said.lines().filter_map(from).collect();
    assert_eq!(lines.len(), 3 * per_host as usize, "{said}");
    assert!(lines.iter().all(|line| *line == lines[0]), "{said}");
    lines[0].clone()
}

#[test]
fn each_host_saves_what_its_workers_hold() {
    let Some(cluster) = Cluster::new(3) else { return };
    let folder = |host: usize| cluster.top.path().join(format!("checkpoint.{host}"));
    assert_eq!(said(&cluster, "opens", 1), "none");
    // A first save that fails leaves nothing, so that a program can begin anew.
    said(&cluster, "fails to save", 1);
    for host in 0..3 {
        assert!(files(&folder(host)).is_empty(), "host {host}: {:?}", files(&folder(host)));
    }
    assert_eq!(said(&cluster, "opens", 1), "none");
    let saved = said(&cluster, "saves", 2);
    let parts: Vec<PathBuf> = (0..3)
        .map(|host| {
            let found = files(&folder(host));
            assert_eq!(found.len(), 1, "of one save, and nothing else: {found:?}");
            found[0].clone()
        })
        .collect();
    let name = |part: &PathBuf| part.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(name(&parts[0]), "m.ckpt");
    // Each has its share of the bytes: the first has the table, too.
    let lengths: Vec<u64> = parts.iter().map(|part| fs::metadata(part).unwrap().len()).collect();
    assert!(lengths[1] > 1000 && lengths[2] > 1000, "{lengths:?}");
    // On as many hosts with other workers, and on one host that has all files.
    assert_eq!(said(&cluster, "opens", 1), saved);
    assert_eq!(said(&cluster, "opens", 2), saved);
    let one = cluster.top.path().join("one");
    fs::create_dir_all(&one).unwrap();
    for part in &parts {
        fs::copy(part, one.join(name(part))).unwrap();
    }
    let read_here = || hectare_orion::run(2, |w| read(w, &one.join("m.ckpt")));
    assert_eq!(read_here().unwrap(), [saved.clone(), saved.clone()]);
    // Any host may have a file.
    fs::rename(&parts[1], folder(2).join(name(&parts[1]))).unwrap();
    assert_eq!(said(&cluster, "opens", 1), saved);
    // One that is damaged, by one that is cut off, and by one that is missing.
    let moved = folder(2).join(name(&parts[1]));
    let whole = fs::read(&moved).unwrap();
    let mut damaged = whole.clone();
    damaged[9] ^= 1;
    fs::write(&moved, &damaged).unwrap();
    let refused = said(&cluster, "opens", 1);
    assert!(
        refused.contains("is damaged: its checksum differs in ") && refused.contains(&name(&moved)),
        "{refused}"
    );
    fs::write(&moved, &whole[..whole.len() - 1]).unwrap();
    let cut_off = said(&cluster, "opens", 1);
    fs::remove_file(&moved).unwrap();
    let missing = said(&cluster, "opens", 1);
    let named = |host: usize| {
        format!("worker {host} (host {} ({}:", cluster.name(host), cluster.network.address(host))
    };
    let lies = format!("is damaged or of another save where {}", named(2));
    assert!(cut_off.contains(&lies) && missing.contains("is on no host of the job"), "{cut_off}\n{missing}");
    for expected in [name(&parts[1]), "part 2 of 3".into(), "host 1 of the job that saved it".into()] {
        assert!(missing.contains(&expected) && cut_off.contains(&expected), "{missing}");
    }
    fs::remove_file(one.join(name(&parts[2]))).unwrap();
    let here = read_here().unwrap_err().to_string();
    assert!(here.contains("part 3 of 3") && here.contains("host 2"), "{here}");
    // A file of another save.
    fs::write(&moved, &whole).unwrap();
    fs::write(folder(1).join("m.ckpt"), fs::read(&parts[0]).unwrap()).unwrap();
    assert_eq!(said(&cluster, "opens", 1), saved, "two hosts have the first file");
    said(&cluster, "saves", 1);
    let differ = said(&cluster, "opens", 1);
    assert!(differ.contains(&named(0)) && differ.contains(&named(1)), "{differ}");
    let older = format!("remove the one that is not wanted; by the times of the files, that of {}", named(1));
    assert!(differ.contains(&older), "{differ}");
    // A file that only one host cannot read: the error names the host.
    fs::remove_file(folder(1).join("m.ckpt")).unwrap();
    fs::create_dir(folder(1).join("m.ckpt")).unwrap();
    let refused = said(&cluster, "opens", 1);
    let of = format!("refused: host {} ({}:", cluster.name(1), cluster.network.address(1));
    assert!(refused.starts_with(&of) && refused.contains("not a checkpoint"), "{refused}");
    cluster.assert_nothing_is_left();
}
