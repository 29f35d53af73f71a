//! Descriptions that the macro makes of bodies: the accesses that it finds, with their subscripts.
use hectare_orion::loop_nest::{LoopNest, Subscript};
use hectare_orion::{parallel_for, run};

/// `w a[i + 1, 0..n]`: the mode (r, w or u), the array, its subscripts (`*` for all, `?` for anything).
fn shown(nest: &LoopNest) -> Vec<String> {
    let subscript = |subscript: &Subscript| match subscript {
        Subscript::Index(form) => nest.show(form),
        Subscript::Range(first, last) => format!("{}..{}", nest.show(first), nest.show(last)),
        Subscript::Full => "*".into(),
        Subscript::Unknown => "?".into(),
    };
    let access = |access: &hectare_orion::loop_nest::Access| {
        let subscripts: Vec<String> = access.subscripts.iter().map(subscript).collect();
        let mode = if !access.mode.writes() {
            "r"
        } else if access.mode.reads() {
            "u"
        } else {
            "w"
        };
        format!("{mode} {}[{}]", nest.arrays[access.array].name, subscripts.join(", "))
    };
    nest.accesses.iter().map(access).collect()
}

/// A type of its own, in which indices may be computed.
struct Settings {
    rank: usize,
    half: f64,
    two: f64,
    small: u8,
    mixed: (usize, i32),
}

const AT: usize = 4;

/// Each body in a function of its own; it is run, so that it has to be right, and its description is compared.
macro_rules! described {
    ($($name:ident |$a:ident, $u:ident, $v:ident, $i:ident, $n:ident, $s:ident| { $($body:tt)* } => [$($wanted:literal),*];)*) => {
        $(
            #[test]
            #[allow(unused, clippy::all)]
            fn $name() {
                let found = run(1, |w| {
                    w.check_loops(true);
                    let mut $a = w.fill([64], 1u64)?;
                    let mut $u = w.fill([8, 4], 1u64)?;
                    let mut $v = w.fill([8, 4, 3], 1u64)?;
                    let ($n, $s) =
                        (3usize, Settings { rank: 2, half: 0.5, two: 2.0, small: 3, mixed: (1, -1) });
                    parallel_for!(w, ordered, write [$a, $u, $v]; for $i in 1..4 {
                        // Every array is written somewhere.
                        ($a[0], $u[[0, 0]], $v[[0, 0, 0]]) = (1, 1, 1);
                        $($body)*
                    })?;
                    let nests = w.__nests();
                    Ok((nests.len(), shown(&nests[0])))
                });
                let (loops, found) = found.unwrap().remove(0);
                let wanted: Vec<&str> = vec![$($wanted),*];
                assert_eq!((loops, &found[3..]), (1, &wanted.iter().map(|w| w.to_string()).collect::<Vec<_>>()[..]));
            }
        )*
    };
}

described! {
    element |a, u, v, i, n, s| { a[i] = 1; } => ["w a[i]"];
    assigned |a, u, v, i, n, s| { a[i] += a[i - 1]; } => ["r a[i - 1]", "u a[i]"];
    two_dims |a, u, v, i, n, s| { u[[i, 2]] = u[[i - 1, n]]; } => ["r u[i - 1, 3]", "w u[i, 2]"];
    three_dims |a, u, v, i, n, s| { v[[i, 0, 2]] -= 1; } => ["u v[i, 0, 2]"];
    row |a, u, v, i, n, s| { u.row(i)[0] + 1; } => ["r u[i, *]"];
    row_mut |a, u, v, i, n, s| { u.row_mut(i + 1)[0] = 1; } => ["u u[i + 1, *]"];
    row_of_three |a, u, v, i, n, s| { v.row_mut([i, n])[0] = v.row([0, i])[1]; } => ["r v[0, i, *]", "u v[i, 3, *]"];
    rows_mut |a, u, v, i, n, s| { let (x, y) = u.rows_mut(i, i + n); x[0] = y[0]; } => ["u u[i, *]", "u u[i + 3, *]"];
    slice |a, u, v, i, n, s| { a.slice(i..n * i)[0..0].len(); } => ["r a[i..3*i]"];
    slice_mut |a, u, v, i, n, s| { a.slice_mut(2 * i..2 * i + 2)[1] = 1; } => ["u a[2*i..2*i + 2]"];
    swapped |a, u, v, i, n, s| { let x = &mut a[i]; *x = 1; std::mem::swap(x, &mut 3); } => ["u a[i]"];
    products |a, u, v, i, n, s| { a[n * (i + n) - 2 * i] = 1; } => ["w a[i + 9]"];
    negative |a, u, v, i, n, s| { a[40 - n * i] = 1; a[(-(i as isize) + 5) as usize] = 1; } => ["w a[-3*i + 40]", "w a[-i + 5]"];
    lets |a, u, v, i, n, s| { let (k, l) = (i + 1, n); let m: usize = k * l; a[m] = 1; } => ["w a[3*i + 3]"];
    casts |a, u, v, i, n, s| { a[(i as i64 + n as i64) as usize] = 1; } => ["w a[i + 3]"];
    narrow_cast |a, u, v, i, n, s| { a[i as u8 as usize] = 1; } => ["w a[?]"];
    constants |a, u, v, i, n, s| { a[i + AT] = 1; a[i + u8::BITS as usize] = 1; } => ["w a[i + 4]", "w a[i + 8]"];
    fields |a, u, v, i, n, s| { a[i * s.rank + s.mixed.0] = 1; } => ["w a[2*i + 1]"];
    small_field |a, u, v, i, n, s| { a[i + s.small as usize] = 1; a[(s.small * 80) as usize / 9] = 1; } => ["w a[i + 3]", "w a[?]"];
    signed_field |a, u, v, i, n, s| { a[(i as i64 + s.mixed.1 as i64) as usize] = 1; } => ["w a[i - 1]"];
    floats |a, u, v, i, n, s| { a[(s.half * s.two) as usize] = 1; } => ["w a[?]"];
    narrow_products |a, u, v, i, n, s| { a[(s.small * s.small) as usize] = 1; } => ["w a[?]"];
    wide_products |a, u, v, i, n, s| { a[(n * s.rank) as usize] = 1; } => ["w a[6]"];
    divided |a, u, v, i, n, s| { a[i / 2] = 1; a[i % 2] = 1; a[i & 1] = 1; } => ["w a[?]", "w a[?]", "w a[?]"];
    squared |a, u, v, i, n, s| { a[i * i] = 1; } => ["w a[?]"];
    array_of_indices |a, u, v, i, n, s| { let at = [i, 0]; u[at] = 1; u[[i, i / 2]] = 1; } => ["w u[?, ?]", "w u[i, ?]"];
    data |a, u, v, i, n, s| { let k = a[i] as usize; a[k] = 1; } => ["r a[i]", "w a[?]"];
    conditions |a, u, v, i, n, s| { if a[i] > 9 { a[i + 1] = 1; } else { u[[i, 0]] = 2; } } => ["r a[i]", "w a[i + 1]", "w u[i, 0]"];
    arms |a, u, v, i, n, s| { match a[i] { 1 if a[0] > 3 => a[1] = 1, x => u[[0, 1]] = x } } => ["r a[i]", "r a[0]", "w a[1]", "w u[0, 1]"];
    inner |a, u, v, i, n, s| { for k in 0..n { a[i + k] = 1; } } => ["w a[i + k]"];
    triangular |a, u, v, i, n, s| { for k in i..2 * n { for l in 0..k { a[3 * k + l] = 1; } } } => ["w a[3*k + l]"];
    stepped |a, u, v, i, n, s| { for k in (i..=9).rev().step_by(2) { a[k] = 1; } } => ["w a[k]"];
    over_values |a, u, v, i, n, s| { for k in [1usize, 2] { a[k] = 1; } } => ["w a[?]"];
    looped |a, u, v, i, n, s| { let mut k = 0; while k < 2 { a[k] = 1; k += 1; } loop { a[n] = 1; break; } } => ["w a[?]", "w a[3]"];
    closures |a, u, v, i, n, s| { let mut set = |k: usize| { a[k] = 1; a[i] = 2 }; set(3); } => ["w a[?]", "w a[i]"];
    methods |a, u, v, i, n, s| { a[i] = a[n].max(a[1]).wrapping_mul(3); a[2].clone_from(&3); } => ["r a[1]", "r a[3]", "w a[i]", "u a[2]"];
    borrowed |a, u, v, i, n, s| { let (x, y) = (&a[i], &u[[i, 0]]); let z = *x + y; let _ = &mut a[0]; } => ["r a[i]", "r u[i, 0]", "u a[0]"];
    destructured |a, u, v, i, n, s| { [a[1], (a[i])] = [1, 2]; } => ["w a[1]", "w a[i]"];
    matched_for_writing |a, u, v, i, n, s| { let ref mut x = a[i]; *x = 3; } => ["u a[i]"];
    macros |a, u, v, i, n, s| { assert_eq!(a[i], a[n], "{}", a[0]); } => ["r a[i]", "r a[3]", "r a[0]"];
    shadowed |a, u, v, i, n, s| { let i = i + 1; a[i] = 1; { let n = i / 2; a[n] = 1; } a[n] = 1; } => ["w a[i + 1]", "w a[?]", "w a[3]"];
    items |a, u, v, i, n, s| { a[AT] = 1; const AT: usize = 7; } => ["w a[?]"];
    left_out |a, u, v, i, n, s| { #[cfg(any())] let i = 0; a[i] = 1; } => ["w a[?]"];
    subscripts_that_read |a, u, v, i, n, s| { u[[a[i] as usize, 0]] = 1; } => ["r a[i]", "w u[?, 0]"];
    literals |a, u, v, i, n, s| { a[0x1_f] = 1; a[0b11usize + i] = 1; } => ["w a[31]", "w a[i + 3]"];
    huge |a, u, v, i, n, s| { if i > 9 { a[i * 0x7fff_ffff_ffff_ffff + 0x7fff_ffff_ffff_ffff - i] = 1; } } => ["w a[9223372036854775806*i + 9223372036854775807]"];
    overflow |a, u, v, i, n, s| { if i > 9 { a[0x7fff_ffff_ffff_ffff + n + i] = 1; } } => ["w a[?]"];
}
