//! Documents as lists of words, from text or generated.
mod generated;
mod words;

pub(crate) use self::generated::{Generated, PLANTED, generate};
pub(crate) use self::words::{Documents, Keep, Words, frequent};
use super::warn;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};

/// Which text is read, and how.
#[derive(Clone, Debug, Args)]
pub(crate) struct Source {
    /// A file, whose paragraphs (between empty lines) are the documents, or the sentences, or a folder, whose files are.
    /// Generated if left out.
    #[arg(long)]
    pub(crate) text: Option<PathBuf>,
    /// Each line of the file, or of the folder's files, is a document or a sentence.
    #[arg(long, requires = "text")]
    pub(crate) lines: bool,
    /// Words are what stands between spaces, as it stands there; else all letters between others, in lower case.
    #[arg(long, requires = "text")]
    pub(crate) tokenized: bool,
}

impl Source {
    /// The name of the text, in messages.
    pub(crate) fn name(&self) -> String {
        self.text.as_ref().map_or("the generated text".into(), |path| path.display().to_string())
    }

    /// The definition of a word, in messages.
    pub(crate) fn rule(&self) -> &'static str {
        if self.tokenized { "between spaces" } else { "letters only" }
    }

    /// The text at `path`, whose words have at least `letters` letters. Documents without words are documents as well, so that
    /// their numbers are those of lines or files.
    pub(crate) fn read(&self, path: &Path, letters: usize, keep: Keep) -> Result<Documents> {
        let is_folder = path.is_dir();
        let files = if is_folder { files(path)? } else { vec![path.to_owned()] };
        ensure!(!files.is_empty(), "{}: the folder has no files", path.display());
        let (mut words, mut documents) = (Words::default(), Vec::new());
        for file in &files {
            let text = text(file)?;
            ensure!(is_folder || !text.trim().is_empty(), "{}: the file is empty", file.display());
            let mut add = |text: &str| documents.push(self.split(text, letters, &mut words));
            match (self.lines, is_folder) {
                (true, _) => text.lines().for_each(add),
                (false, true) => add(&text),
                (false, false) => paragraphs(&text).iter().for_each(|text| add(text)),
            }
            let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
            if !self.lines && !is_folder && documents.len() == 1 && lines > 1 {
                warn(format_args!(
                    "warning: {}: no empty line is between its {lines} lines, so they are read as one: --lines reads each alone",
                    file.display()
                ));
            }
        }
        Ok(words.frequent(documents, keep))
    }

    fn split(&self, text: &str, letters: usize, words: &mut Words) -> Vec<u32> {
        let is_long = |word: &&str| word.chars().count() >= letters;
        match self.tokenized {
            true => text.split_whitespace().filter(is_long).map(|word| words.number(word)).collect(),
            false => {
                let parts = text.split(|c: char| !c.is_alphabetic()).filter(|part| !part.is_empty());
                parts.filter(is_long).map(|word| words.number(&word.to_lowercase())).collect()
            }
        }
    }
}

/// The text of a file.
pub(crate) fn text(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        bail!("{} is compressed: unpack it first (gunzip -k {0})", path.display());
    }
    let text = str::from_utf8(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes));
    // Of UTF-16, every second byte of Latin letters is zero.
    match text {
        Ok(text) if !text.contains('\0') => return Ok(text.to_owned()),
        _ => {}
    }
    let good = text.map_or_else(|error| error.valid_up_to(), |text| text.find('\0').unwrap_or(0));
    let line = bytes[..good].iter().filter(|byte| **byte == b'\n').count() + 1;
    bail!(
        "{}:{line}: this is not text in UTF-8: convert it (iconv -f latin1 -t utf-8, or -f utf-16)",
        path.display()
    )
}

/// Parts between empty lines.
fn paragraphs(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let parts = lines.split(|line| line.trim().is_empty()).filter(|lines| !lines.is_empty());
    parts.map(|lines| lines.join("\n")).collect()
}

/// All files below a folder, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        match path.is_dir() {
            true => files.extend(self::files(&path)?),
            false => files.push(path),
        }
    }
    Ok(files)
}
