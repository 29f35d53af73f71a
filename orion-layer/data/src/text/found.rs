//! Which columns a file has, by its first lines.
use super::columns::Columns;
use super::{Separator, Share, for_each_line};
use std::path::Path;

/// How many lines are looked at.
const LINES: usize = 10;

impl Columns {
    /// The columns of a file of `indices` indices and a value in each line: between `::` (ids from 1), commas, semicolons,
    /// tabs or spaces, whichever cuts most of the first ten lines into enough columns; perhaps with a header, and with more
    /// columns behind. [`Columns::WHITESPACE`] if no line is as expected, or the file cannot be read: whoever reads it then
    /// says why.
    ///
    /// ```
    /// use hectare_data::text::Columns;
    /// # let path = std::env::temp_dir().join(format!("hectare-found-{}.csv", std::process::id()));
    /// std::fs::write(&path, "userId,movieId,rating,timestamp\n1,307,3.5,1256677221\n")?;
    /// let columns = Columns::found_in(&path, 2);
    /// # std::fs::remove_file(&path)?;
    /// assert_eq!(columns, Columns { more_columns: true, ..Columns::CSV });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn found_in(path: impl AsRef<Path>, indices: usize) -> Columns {
        let mut lines = Vec::new();
        let looked = for_each_line(path.as_ref(), Share::ALL, |line, _| {
            if !line.trim_ascii().is_empty() && !line.starts_with('#') {
                lines.push(line.to_owned());
            }
            // An error ends the reading.
            if lines.len() < LINES { Ok(()) } else { Err(String::new().into()) }
        });
        if looked.is_err() && lines.len() < LINES {
            return Columns::WHITESPACE;
        }
        let semicolons = Columns { separator: Separator::Text(";"), ..Columns::CSV };
        // From the most general to the most particular: the last of equals is taken.
        let known = [Columns::WHITESPACE, Columns::TSV, semicolons, Columns::CSV, Columns::MOVIELENS];
        let fits = |columns: &Columns| lines.iter().filter(|line| columns.count(line) > indices).count();
        match known.into_iter().max_by_key(fits).filter(|columns| fits(columns) > 0) {
            Some(found) => Columns { header: true, more_columns: true, ..found },
            None => Columns::WHITESPACE,
        }
    }

    fn count(&self, line: &str) -> usize {
        match self.separator {
            Separator::Whitespace => line.split_ascii_whitespace().count(),
            Separator::Text(text) => line.split(text).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Columns {
        let name = format!("hectare-found-{}-{}", std::process::id(), text.len());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        let found = Columns::found_in(&path, 2);
        std::fs::remove_file(&path).unwrap();
        found
    }

    #[test]
    fn first_lines_tell_the_separator() {
        let separators = ["::", ",", ";", "\t"];
        for text in separators {
            let line = |numbers: [u32; 4]| numbers.map(|x| x.to_string()).join(text) + "\n";
            let lines: String = (0..20).map(|at| line([at + 1, 2, 3, 4])).collect();
            let columns = found(&lines);
            assert_eq!(columns.separator, Separator::Text(text));
            assert_eq!(columns.first_index, usize::from(text == "::"));
            let parsed = columns.parser::<f32, 2>()(&line([7, 8, 9, 10]), 50).unwrap();
            let less = usize::from(text == "::");
            assert_eq!(parsed, Some(([7 - less, 8 - less], 9.0)));
        }
        assert_eq!(found("1 2  3\n4 5 6 \n").separator, Separator::Whitespace);
        // A header of names with commas in a file of tabs does not decide.
        assert_eq!(found("a,b,c,d\n1\t2\t3\n4\t5\t6\n").separator, Separator::Text("\t"));
        assert_eq!(found(""), Columns::WHITESPACE);
        assert_eq!(found("no numbers\n"), Columns::WHITESPACE);
        assert_eq!(Columns::found_in("/nowhere/at/all", 2), Columns::WHITESPACE);
    }
}
