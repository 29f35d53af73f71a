//! Which kernels this processor can run.

/// The instruction set that the kernels use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isa {
    /// AVX-512 F, BW and VL; with `vbmi2`, also the compressing and counting instructions that decode bitmaps.
    #[cfg(target_arch = "x86_64")]
    Avx512 {
        /// Whether AVX-512 VBMI2 and VPOPCNTDQ are there.
        vbmi2: bool,
    },
    /// AVX2, BMI1 and BMI2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Anything else.
    Portable,
}

impl Isa {
    /// The best that this processor has; the standard library caches what it asked the processor.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("popcnt")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl");
            let vbmi2 =
                is_x86_feature_detected!("avx512vbmi2") && is_x86_feature_detected!("avx512vpopcntdq");
            match (avx2, avx512) {
                (true, true) => Self::Avx512 { vbmi2 },
                (true, false) => Self::Avx2,
                _ => Self::Portable,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Self::Portable
    }

    /// Every instruction set that this processor can run, best first.
    #[cfg(test)]
    pub(super) fn runnable() -> Vec<Self> {
        let mut all = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        match Self::detect() {
            Self::Avx512 { vbmi2 } => {
                all.extend([Self::Avx2, Self::Avx512 { vbmi2: false }]);
                if vbmi2 {
                    all.push(Self::Avx512 { vbmi2 });
                }
            }
            Self::Avx2 => all.push(Self::Avx2),
            Self::Portable => {}
        }
        all.reverse();
        all
    }

    /// Whether there are non-temporal stores.
    pub(crate) fn has_non_temporal(self) -> bool {
        self != Self::Portable
    }
}
