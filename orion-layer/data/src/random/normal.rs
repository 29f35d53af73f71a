//! The quantile function of the normal distribution: algorithm AS 241, PPND16 (Wichura, 1988), with a relative
//! error of about 1e-16.

/// The upper 53 bits as a number of the open interval (0, 1): the middle of one of 2^53 parts, except that the
/// uppermost part's is rounded to 1 - 2^-53.
#[inline]
pub(super) fn open_unit(bits: u64) -> f64 {
    const SCALE: f64 = 1.0 / (1u64 << 53) as f64;
    (((bits >> 11) as i64 as f64 + 0.5) * SCALE).min(1.0 - SCALE)
}

#[inline]
fn polynomial<const N: usize>(coefficients: [f64; N], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, &c| sum * x + c)
}

/// The number below which a standard normal variable lies with probability `p`, for `p` in (0, 1).
#[inline]
pub(super) fn quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() > 0.425 {
        return tail(p);
    }
    let r = 0.180625 - q * q;
    q * polynomial(CENTER_NUMERATOR, r) / polynomial(CENTER_DENOMINATOR, r)
}

#[inline(never)]
fn tail(p: f64) -> f64 {
    let (outside, sign) = if p < 0.5 { (p, -1.0) } else { (1.0 - p, 1.0) };
    let r = (-ln(outside)).sqrt();
    let magnitude = if r <= 5.0 {
        polynomial(MIDDLE_NUMERATOR, r - 1.6) / polynomial(MIDDLE_DENOMINATOR, r - 1.6)
    } else {
        polynomial(FAR_NUMERATOR, r - 5.0) / polynomial(FAR_DENOMINATOR, r - 5.0)
    };
    sign * magnitude
}

/// The natural logarithm of a normal positive number: with `x = m · 2^e` and `m` in `[√½, √2)`,
/// `e · ln 2 + 2 artanh((m - 1) / (m + 1))` by the power series, whose rest is below 1e-16. The mathematical
/// libraries of two machines differ in the last bit; this does not.
fn ln(x: f64) -> f64 {
    const SERIES: [f64; 10] = [
        1.0,
        1.0 / 3.0,
        1.0 / 5.0,
        1.0 / 7.0,
        1.0 / 9.0,
        1.0 / 11.0,
        1.0 / 13.0,
        1.0 / 15.0,
        1.0 / 17.0,
        1.0 / 19.0,
    ];
    const FRACTION: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut m = f64::from_bits((bits & FRACTION) | (1023 << 52));
    if m > std::f64::consts::SQRT_2 {
        m *= 0.5;
        exponent += 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * s * polynomial(SERIES, s * s)
}

// The coefficients of AS 241, constant terms first, digits as published.
#[rustfmt::skip]
#[allow(clippy::excessive_precision)]
mod coefficients {
    pub(super) const CENTER_NUMERATOR: [f64; 8] = [
        3.387_132_872_796_366_608_0e0, 1.331_416_678_917_843_774_5e2, 1.971_590_950_306_551_442_7e3,
        1.373_169_376_550_946_112_5e4, 4.592_195_393_154_987_145_7e4, 6.726_577_092_700_870_085_3e4,
        3.343_057_558_358_812_810_5e4, 2.509_080_928_730_122_672_7e3,
    ];
    pub(super) const CENTER_DENOMINATOR: [f64; 8] = [
        1.0, 4.231_333_070_160_091_125_2e1, 6.871_870_074_920_579_083_0e2, 5.394_196_021_424_751_107_7e3,
        2.121_379_430_158_659_586_7e4, 3.930_789_580_009_271_061_0e4, 2.872_908_573_572_194_267_4e4,
        5.226_495_278_852_854_561_0e3,
    ];
    pub(super) const MIDDLE_NUMERATOR: [f64; 8] = [
        1.423_437_110_749_683_577_34e0, 4.630_337_846_156_545_295_90e0, 5.769_497_221_460_691_405_50e0,
        3.647_848_324_763_204_605_04e0, 1.270_458_252_452_368_382_58e0, 2.417_807_251_774_506_117_70e-1,
        2.272_384_498_926_918_458_33e-2, 7.745_450_142_783_414_076_40e-4,
    ];
    pub(super) const MIDDLE_DENOMINATOR: [f64; 8] = [
        1.0, 2.053_191_626_637_758_821_87e0, 1.676_384_830_183_803_849_40e0, 6.897_673_349_851_000_045_50e-1,
        1.481_039_764_274_800_745_90e-1, 1.519_866_656_361_645_719_66e-2, 5.475_938_084_995_344_946_00e-4,
        1.050_750_071_644_416_843_24e-9,
    ];
    pub(super) const FAR_NUMERATOR: [f64; 8] = [
        6.657_904_643_501_103_777_20e0, 5.463_784_911_164_114_369_90e0, 1.784_826_539_917_291_335_80e0,
        2.965_605_718_285_048_912_30e-1, 2.653_218_952_657_612_309_30e-2, 1.242_660_947_388_078_438_60e-3,
        2.711_555_568_743_487_578_15e-5, 2.010_334_399_292_288_132_65e-7,
    ];
    pub(super) const FAR_DENOMINATOR: [f64; 8] = [
        1.0, 5.998_322_065_558_879_376_90e-1, 1.369_298_809_227_358_053_10e-1, 1.487_536_129_085_061_485_25e-2,
        7.868_691_311_456_132_591_00e-4, 1.846_318_317_510_054_681_80e-5, 1.421_511_758_316_445_888_70e-7,
        2.044_263_103_389_939_785_64e-15,
    ];
}
use self::coefficients::*;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn quantiles_of_tables() {
        let known = [
            (0.5, 0.0),
            (0.75, 0.674_489_750_196_081_7),
            (0.975, 1.959_963_984_540_054),
            (0.001, -3.090_232_306_167_813_5),
            (1e-5, -4.264_890_793_922_825),
            (1e-20, -9.262_340_089_798_408),
        ];
        for (p, x) in known {
            assert!((quantile(p) - x).abs() <= 4e-15 * x.abs(), "{p}: {} against {x}", quantile(p));
        }
    }

    #[test]
    fn the_logarithm_is_that_of_the_library() {
        let stream = Stream::new(3, "logarithm");
        for index in 0..100_000 {
            let x = open_unit(stream.bits(index)).powi(1 + (index % 8) as i32);
            assert!((ln(x) - x.ln()).abs() <= 4e-16 * x.ln().abs().max(0.5), "{x}");
        }
    }

    #[test]
    fn the_ends_are_finite() {
        assert!(open_unit(0) > 0.0 && open_unit(u64::MAX) < 1.0);
        assert!(quantile(open_unit(0)) > -8.5 && quantile(open_unit(u64::MAX)) < 8.5);
    }

    #[test]
    fn moments_and_tails_are_normal() {
        let n = 1_000_000;
        let mut numbers = vec![0.0f64; n];
        Stream::new(11, "normal").fill_normal(&mut numbers, 0, 1.0);
        let mean = |f: &dyn Fn(f64) -> f64| numbers.iter().map(|&x| f(x)).sum::<f64>() / n as f64;
        // Five standard deviations of each statistic: sqrt(1, 2, 15, 96) / sqrt(n), and of the share outside 2.
        assert!(mean(&|x| x).abs() < 0.005);
        assert!((mean(&|x| x * x) - 1.0).abs() < 0.0071);
        assert!(mean(&|x| x * x * x).abs() < 0.0194);
        assert!((mean(&|x| x.powi(4)) - 3.0).abs() < 0.049);
        assert!((mean(&|x| f64::from(u8::from(x.abs() > 2.0))) - 0.045_500_26).abs() < 0.001_05);
    }
}
