//! Bodies that try to reach elements which their description does not name: each is run checked (what it touches is
//! compared with the description) and by several workers, against the same text as a serial loop over vectors.
use hectare_orion::{parallel_for, run};

const LEN: usize = 48;

fn first(k: usize) -> u64 {
    (k as u64 * 7 + 3) % 41
}

fn second(k: usize) -> u64 {
    (k as u64 * 5 + 1) % 17
}

fn indices(range: impl Iterator<Item = usize>) -> impl Iterator<Item = usize> {
    range
}

macro_rules! twins {
    ($($name:ident |$u:ident, $a:ident, $i:ident| $range:expr => { $($body:tt)* })*) => { $(
        #[test]
        #[allow(unused, irrefutable_let_patterns, clippy::all, clippy::undocumented_unsafe_blocks)]
        fn $name() {
            let wanted = {
                let $a: Vec<u64> = (0..LEN).map(second).collect();
                let mut $u: Vec<u64> = (0..LEN).map(first).collect();
                for $i in indices($range) { $($body)* }
                $u
            };
            for (workers, checked) in [(1, true), (2, true), (1, false), (2, false), (3, false), (4, false)] {
                let results = run(workers, |w| {
                    w.check_loops(checked);
                    let $a = w.from_fn([LEN], |[k]| second(k))?;
                    let mut $u = w.from_fn([LEN], |[k]| first(k))?;
                    parallel_for!(w, ordered, read $a, write $u; for $i in $range { $($body)* })?;
                    $u.to_vec(w)
                });
                let results = results.unwrap_or_else(|error| panic!("{workers} workers, {checked}: {error}"));
                assert!(results.iter().all(|result| *result == wanted), "{workers} workers");
            }
        }
    )* };
}

mod consts {
    pub(crate) const N: usize = 9;
}

const N: usize = 2;

trait At {
    const AT: usize;
}

impl At for () {
    const AT: usize = 2;
}

impl At for u64 {
    const AT: usize = 3;
}

#[allow(dead_code)]
struct Own;

impl At for Own {
    const AT: usize = 1;
}

/// Puts a name that it is given in front of something.
macro_rules! rebind {
    ($name:ident = $value:expr) => {
        let $name = $value;
    };
}

/// A pattern of the name that it is given.
macro_rules! pattern {
    ($name:ident) => {
        $name
    };
}

macro_rules! constants {
    () => {
        const N: usize = 7;
    };
}

twins! {
    shadowed_by_let |u, a, i| 0..40 => { let i = i / 2; u[i] += a[i]; }
    shadowed_in_a_block |u, a, i| 0..40 => { let k = { let i = 3; i }; u[k] ^= a[i]; u[i] += 1; }
    shadowed_by_let_else |u, a, i| 0..40 => { let Some(i) = i.checked_sub(5) else { continue }; u[i] += a[i + 5]; }
    shadowed_by_if_let_chain |u, a, i| 0..40 => {
        if let Some(i) = i.checked_sub(3) && let k = i + 1 && u[k] > 2 { u[i] += a[k]; }
    }
    shadowed_by_while_let |u, a, i| 0..40 => {
        let mut next = Some(i / 3);
        while let Some(i) = next { u[i] += a[0]; next = None; }
    }
    shadowed_in_an_arm |u, a, i| 0..40 => {
        match i % 7 { i @ 0..3 => u[i] += 1, i if u[i + 1] > 4 => u[i + 2] ^= 1, _ => u[i] += a[i] }
    }
    shadowed_by_a_closure |u, a, i| 0..40 => { let mut add = |i: usize| u[i] += 1; add(2); add(i / 4); u[i] ^= a[i]; }
    shadowed_by_an_or_pattern |u, a, i| 0..40 => {
        let (Ok(i) | Err(i)) = (if i > 3 { Ok(i - 3) } else { Err(0usize) });
        u[i] += a[i];
    }
    shadowed_by_a_raw_name |u, a, i| 0..40 => { let r#i = 4; u[i] += a[r#i]; }
    shadowed_by_a_const |u, a, i| 0..40 => { u[N] += a[i]; const N: usize = 5; }
    shadowed_by_a_static |u, a, i| 0..40 => { static N: usize = 6; u[N] += a[i]; }
    a_const_of_the_module |u, a, i| 0..40 => { u[N + i] += a[consts::N]; }
    shadowed_by_a_use |u, a, i| 0..40 => { use consts::N; u[N] += a[i]; }
    shadowed_by_a_renaming_use |u, a, i| 0..40 => { use usize as other; use consts::N as N; u[N] += a[i]; }
    shadowed_by_a_glob |u, a, i| 0..40 => { use consts::*; u[N] += a[i]; }
    shadowed_by_a_macro_of_items |u, a, i| 0..40 => { u[N] += a[i]; constants!(); }
    shadowed_by_a_macro_of_lets |u, a, i| 0..40 => { rebind!(i = 8); u[i] += a[2 * i]; }
    shadowed_by_a_macro_in_a_pattern |u, a, i| 0..40 => { let pattern!(i) = i / 5; u[i] += a[i]; }
    shadowed_by_an_associated_const |u, a, i| 0..40 => {
        struct Own;
        impl Own { const AT: usize = 11; }
        u[Own::AT] += a[i];
    }
    shadowed_by_a_field |u, a, i| 0..40 => { let s = (i / 3, 1); u[s.0] += a[i]; let (i, ..) = s; u[i] ^= 1; }
    swapped_names |u, a, i| 0..20 => { let (i, k) = (2 * i, i); let (k, i) = (i, k); u[k] += a[i]; u[i] ^= 3; }
    a_let_that_is_left_out |u, a, i| 0..40 => {
        let k = i;
        #[cfg(any())]
        let k = 0;
        u[k] += a[i];
    }
    a_let_that_is_changed |u, a, i| 0..40 => { let mut k = i; k /= 2; u[k] += a[i]; }
    a_let_that_comes_later |u, a, i| 0..40 => { let k; if i > 4 { k = i - 4 } else { k = i } u[k] += a[i]; }
    written_by_ref_mut |u, a, i| 0..40 => { let ref mut x = u[i]; *x += a[i]; }
    written_by_ref_mut_in_an_arm |u, a, i| 0..40 => { match u[i] { 0 => {} ref mut x => *x = a[i] } }
    written_by_ref_mut_in_a_condition |u, a, i| 0..40 => { if let ref mut x = u[i] { *x += a[i]; } }
    written_by_destructuring |u, a, i| 0..40 => { (u[i], _) = (a[i], 1); [u[i + 1], u[i + 2]] = [i as u64, 4]; }
    written_by_nested_destructuring |u, a, i| 0..40 => { let k; ((k, (u[i])), ..) = ((i, 2), 3); u[k] += a[k]; }
    written_by_swap |u, a, i| 0..20 => {
        let mut x = a[i];
        std::mem::swap(&mut u[i], &mut x);
        u[i + 20] = x;
    }
    written_by_a_method |u, a, i| 0..40 => { use std::ops::AddAssign; u[i].add_assign(a[i]); (u[i + 1]).add_assign(1); }
    written_by_a_function |u, a, i| 0..40 => { fn set(x: &mut u64) { *x = 9 } set(&mut u[i]); set(&mut (u[i + 3])); u[i] += a[i]; }
    written_through_a_raw_pointer |u, a, i| 0..40 => {
        let place = &raw mut u[i];
        // SAFETY: the pointer was just taken, and nothing else borrows the array.
        unsafe { *place += a[i] };
    }
    written_in_an_unsafe_block |u, a, i| 0..40 => { unsafe { u[i] += 1; } const { 3 }; u[i] += a[i]; }
    written_in_a_tail |u, a, i| 0..40 => { let x = { u[i] += 1; u[i] }; u[i + 1] ^= x + a[i] }
    read_in_a_macro |u, a, i| 0..40 => { assert!(a[i] < 17, "{}", u[i + 1]); let t = format!("{}", a[i]); u[i] += t.len() as u64; }
    narrow_sum |u, a, i| 0..40 => { let k: u8 = i as u8; u[k.wrapping_mul(9) as usize % 40] += 1; u[k as usize] += a[i]; }
    other_bases |u, a, i| 0..16 => { u[0x1f - i] += a[0b11_usize * i]; u[i + 0o2] ^= a[1_0]; }
    backwards |u, a, i| 0..40 => { u[39 - i] += a[i]; let k = 40 - i - 1; u[k] += 1; }
    signed |u, a, i| 1..40 => { let k = -(i as isize) + 40; u[k as usize] += a[(i as i64 - 1) as usize]; }
    closed_loops |u, a, i| 1..=39 => { for k in i..=i + 2 { u[k] += a[k - 1]; } for k in (0..=2).rev() { u[i - k.min(i)] ^= 1; } }
    triangular_and_stepped |u, a, i| 0..12 => {
        for k in i..12 { u[k] += a[i]; for l in (k..40).step_by(5) { u[l] ^= a[k]; } }
        for k in 0..3 { for l in 0..i { u[3 * k + l] += 1; } }
    }
    narrow_loops |u, a, i| 0..30 => { for c in 0..3u8 { u[(c * 90) as usize % 40] += 1; u[i + c as usize] += a[i]; } }
    signed_loops |u, a, i| 1..40 => { for c in -1..=1 { u[(i as i64 + c) as usize] += a[i]; } }
    continued |u, a, i| 0..40 => {
        if a[i] % 3 == 0 { continue; }
        'outer: for k in 0..3 { for l in 0..3 { if l > k { continue 'outer; } if l == 2 { break 'outer; } u[i + l] += 1; } }
        'block: { if u[i] > 20 { break 'block; } u[i] += 1; }
        let x = loop { if u[i] % 2 == 0 { break 2; } u[i] += 1; continue; };
        u[i] += x;
    }
    closures_and_conditions |u, a, i| 0..40 => {
        let half = |x: u64| { if x == 1 { return 7; } x / 2 };
        u[i] = if a[i] > 8 { half(u[i]) } else { half(a[i]) };
        let pick = || a[i + 1];
        u[i + 1] = u[i + 1].max(pick()).wrapping_mul(3) % 101;
    }
    all_assignments |u, a, i| 0..40 => {
        u[i] += a[i]; u[i] -= 1; u[i] *= 3; u[i] /= 2; u[i] %= 97; u[i] ^= 5; u[i] |= 8; u[i] &= 0xff; u[i] <<= 2; u[i] >>= 1;
    }
    inferred_narrow_loops |u, a, i| 0..40 => { u[i] ^= 1; for c in 0..3 { let x: u8 = c; u[(c * 70) as usize / 9] += a[i]; } }
    loops_over_characters |u, a, i| 0..20 => { u[i] ^= 1; for c in ' '..'$' { u[c as usize + i - 32] += a[i]; } }
    bounds_that_are_read |u, a, i| 0..40 => { for k in 0..a[i] as usize { u[k] += 1; } }
    bounds_that_are_read_whole |u, a, i| 0..4 => { for k in 0..a[3] as usize { u[k + i] += 1; } }
    nested_functions |u, a, i| 0..40 => { fn i(u: &mut u64, a: u64) { *u += a } i(&mut u[3], a[2]); }
    method_chains |u, a, i| 0..40 => { *(&mut u[i]) = a[i]; *std::convert::identity(&mut u[i + 1]) += 1; }
    references_to_elements |u, a, i| 0..20 => {
        let (x, y) = (&a[i], { &a[2 * i] });
        let z = if i > 3 { &mut u[i] } else { &mut u[i + 20] };
        *z += *x + y;
    }
    trait_constants |u, a, i| 0..40 => { u[i + <() as At>::AT] += a[<u64 as At>::AT]; }
    types_of_the_body |u, a, i| 0..40 => {
        struct Own;
        impl At for Own { const AT: usize = 9; }
        u[<Own as At>::AT] += a[i];
    }
    labelled_values |u, a, i| 0..40 => { let k = 'k: { if i > 9 { break 'k i - 9; } i }; u[k] += a[i]; }
}
