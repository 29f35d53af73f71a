//! The error that every worker gets when workers have diverged.
use hectare_orion::Error;

/// Checks the results of workers of which worker 1 said something else than the others: each error names both places,
/// which are in `file`, and of `words` those of the usual one and of worker 1.
#[track_caller]
pub fn assert_diverged(file: &str, words: [&str; 2], results: Vec<Result<(), Error>>) {
    for (me, result) in results.into_iter().enumerate() {
        let error = result.unwrap_err();
        let text = error.to_string();
        let Error::Diverged { here_rank, here, there_rank, there, .. } = error else { panic!("{text}") };
        assert_eq!((here_rank as usize, there_rank), (me, u32::from(me != 1)), "{text}");
        let (mine, other) = if me == 1 { (words[1], words[0]) } else { (words[0], words[1]) };
        assert!(here.contains(mine) && there.contains(other), "{text}");
        let place = format!("{file}:");
        assert!(here.contains(&place) && there.contains(&place), "{text}");
    }
}
