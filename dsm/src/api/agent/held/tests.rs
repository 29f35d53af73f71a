//! Sets of lines against a plain one.
use super::LineSet;
use proptest::prelude::*;

proptest! {
    #[test]
    fn runs_are_the_lines(lines in 0u64..400, marks in prop::collection::vec((0u64..450, 0u64..90), 0..12)) {
        let mut words = vec![0u64; 8];
        for (start, len) in marks {
            (start..start + len).filter(|line| *line < 512).for_each(|line| words[line as usize / 64] |= 1 << (line % 64));
        }
        // A bitmap of whole words has bits for lines behind the last, which count for nothing.
        let expected: Vec<u64> = (0..lines).filter(|line| words[*line as usize / 64] >> (line % 64) & 1 != 0).collect();
        let set = LineSet { words: Some(words), lines };
        let runs: Vec<_> = set.runs().collect();
        prop_assert_eq!(runs.iter().cloned().flatten().collect::<Vec<_>>(), expected.clone());
        prop_assert!(runs.windows(2).all(|pair| pair[0].end < pair[1].start));
        prop_assert_eq!((set.len(), set.is_empty()), (expected.len() as u64, expected.is_empty()));
    }
}

#[test]
fn all_lines_are_one_run() {
    let all =
        |lines| LineSet { words: None, lines }.runs().map(|run| (run.start, run.end)).collect::<Vec<_>>();
    assert_eq!(all(7), [(0, 7)]);
    assert_eq!(all(0), []);
}
