//! Examples whose standard output is closed, as by `| head -1`: they end as other programs do.
use crate::common::program::ends_unheard;
use std::fs;

#[test]
fn programs_end_quietly_when_nobody_reads_what_they_say() {
    let folder = std::env::temp_dir().join(format!("hectare-closed-output-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let file = |name: &str, line: &str| {
        let path = folder.join(name);
        fs::write(&path, line).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let (matrix, tensor) = (file("matrix", "0 0 1.5\n"), file("tensor", "0 0 0 1.5\n"));
    for more in [&[][..], &["--serial"]] {
        let unheard =
            |name: &str, args: &[&str]| ends_unheard(name, &[args, &["--passes", "1"], more].concat());
        unheard("sparse_lr", &["--rows", "100"]);
        unheard("lasso", &["--rows", "100", "--features", "30"]);
        unheard("lda", &["--documents", "50"]);
        unheard("word2vec", &["--sentences", "50"]);
        unheard("kmeans", &["--count", "100", "--clusters", "2"]);
        ends_unheard("gbt", &[&["--rows", "100", "--trees", "1"][..], more].concat());
        unheard("factorize", &["--train", &matrix, "--test", &matrix]);
        unheard("tensor", &["--train", &tensor, "--test", &tensor]);
    }
    fs::remove_dir_all(&folder).unwrap();
}
