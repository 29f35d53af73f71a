//! The C of docs/src/c: every block compiles without warnings, and what can run by itself runs.
mod common;

use common::{compiler, has, library, program, root, run};
use std::path::Path;

/// The fenced blocks of a language.
fn blocks(guide: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    guide.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

fn compile(source: &Path, more: &[&str]) {
    let mut cc = compiler("cc", "gnu99");
    // The guide's readers may do without these two.
    cc.args(["-Wno-conversion", "-Wno-sign-conversion"]).arg(source).args(more);
    run(cc.current_dir(source.parent().unwrap()));
}

#[test]
fn the_guide_compiles_and_runs() {
    if !has("cc") {
        return;
    }
    let guide = std::fs::read_to_string(root().join("../docs/src/c/porting.md")).unwrap();
    let blocks = blocks(&guide, "c");
    let (first, others) = blocks.split_first().expect("a block with the declarations");
    assert!(others.len() >= 10, "{} blocks", others.len());
    let directory = tempfile::tempdir().unwrap();
    let rest = std::fs::read_to_string(root().join("tests/c/porting.c")).unwrap();
    // Later blocks use functions of earlier ones: all but the whole programs are declared first.
    let declared = "void learn(ha_area *area, double *model, struct share mine);\n";
    let (lib, rpath) = (library().display(), format!("-Wl,-rpath,{}", library().display()));
    let link = |out: &str, sources: &[&str], define: &str| {
        let at = format!("-L{lib}");
        let more = [sources, &[define, "-o", out, &at, "-lhectare", "-pthread", &rpath]].concat();
        compile(&directory.path().join(sources[0]), &more[1..]);
        run(&mut program(directory.path().join(out), directory.path()));
    };
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("rest.c", &format!("{first}\n{rest}"));
    let mut learn = None;
    let (mut programs, mut replicated) = (0, 0);
    for (number, block) in others.iter().enumerate() {
        let name = format!("block-{number}.c");
        write(&name, &format!("{first}\n{declared}{block}"));
        compile(&directory.path().join(&name), &["-c"]);
        if block.contains("int main(void)") {
            link("program", &[&name, "rest.c"], "-DPROGRAM");
            programs += 1;
        }
        if block.contains("void learn(") {
            learn = Some(name.clone());
        }
        if block.contains("int replicated(") {
            let learn = learn.as_deref().expect("the loop comes before its use");
            link("replicated", &[&name, learn, "rest.c"], "-DGUIDE=replicated");
            replicated += 1;
        }
    }
    assert_eq!((programs, replicated), (2, 1));
}

#[test]
fn the_guide_in_cpp_compiles_and_runs() {
    if !has("c++") {
        return;
    }
    let guide = std::fs::read_to_string(root().join("../docs/src/c/porting.md")).unwrap();
    let blocks = blocks(&guide, "cpp");
    assert_eq!(blocks.len(), 2);
    let directory = tempfile::tempdir().unwrap();
    let (source, out) = (directory.path().join("block.cc"), directory.path().join("block"));
    let main = "int main()\n{\n    as_processes_or_threads([](hectare::worker &worker) { worker.barrier(); });\n    \
                return train(3) == 1.0 ? 0 : 1;\n}\n";
    std::fs::write(&source, blocks.concat() + main).unwrap();
    let mut cpp = compiler("c++", "c++17");
    cpp.arg(&source).arg("-o").arg(&out).arg("-L").arg(library()).args(["-lhectare", "-pthread"]);
    run(cpp.arg(format!("-Wl,-rpath,{}", library().display())));
    run(&mut program(out, directory.path()));
}

/// The programs of the chapter on loops.
#[test]
fn loops_of_the_chapter_compile_and_run() {
    let chapter = std::fs::read_to_string(root().join("../docs/src/c/loops.md")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    for (language, compiler_name, standard, name) in
        [("c", "cc", "gnu99", "loops.c"), ("cpp", "c++", "c++17", "loops.cc")]
    {
        if !has(compiler_name) {
            continue;
        }
        let (source, out) = (directory.path().join(name), directory.path().join(format!("{name}.out")));
        let blocks = blocks(&chapter, language);
        assert_eq!(blocks.len(), 1);
        std::fs::write(&source, &blocks[0]).unwrap();
        let mut compiler = compiler(compiler_name, standard);
        compiler.args(["-Wno-conversion", "-Wno-sign-conversion"]).arg(&source).arg("-o").arg(&out);
        compiler.arg("-L").arg(library()).args(["-lhectare", "-pthread"]);
        run(compiler.arg(format!("-Wl,-rpath,{}", library().display())));
        let said = String::from_utf8(run(&mut program(&out, directory.path())).stdout).unwrap();
        let text = chapter.split("```text\n").nth(1).and_then(|text| text.split("```").next()).unwrap();
        let is_said = |line: &str| said.lines().any(|said| said.starts_with(line.trim_end_matches("[...]")));
        assert!(language != "c" || text.lines().all(is_said), "{said}");
    }
}

#[test]
fn what_the_guides_name_is_there() {
    let chapters = ["porting", "loops"].map(|chapter| root().join(format!("../docs/src/c/{chapter}.md")));
    let guide = chapters.map(|chapter| std::fs::read_to_string(chapter).unwrap()).concat();
    let header = std::fs::read_to_string(root().join("include/hectare/hectare.h")).unwrap();
    let names = guide.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let unknown: Vec<&str> = names
        .filter(|name| name.starts_with("ha_") || name.starts_with("HA_"))
        .filter(|name| !header.contains(name))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
