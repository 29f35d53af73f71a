//! Inner loops that are compiled for several processors, of which a program takes the best that it runs on.

/// For which processor an inner loop is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instructions {
    /// The instructions of every processor of the target.
    Baseline,
    /// `avx2`.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// `avx512f`, `avx512vl`, `avx512dq` and `avx512bw`.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Instructions {
    /// All that this processor has, the best first.
    pub(crate) fn all() -> Vec<Instructions> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let wide = std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512vl");
            // The functions for it are compiled with these as well.
            if wide && std::is_x86_feature_detected!("avx512dq") && std::is_x86_feature_detected!("avx512bw")
            {
                all.push(Instructions::Avx512);
            }
            if std::is_x86_feature_detected!("avx2") {
                all.push(Instructions::Avx2);
            }
        }
        all.push(Instructions::Baseline);
        all
    }
}
