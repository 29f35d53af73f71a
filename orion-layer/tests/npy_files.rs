//! `.npy` files: those of NumPy are read, and those of this program are the same, on any number of workers.
use crate::common;

use common::Scratch;
use hectare_orion::array::NpyElement;
use hectare_orion::{Error, Result, run};
use std::fs;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/npy").join(name).with_extension("npy")
}

/// Reads a fixture and saves it again.
fn check<T: NpyElement + PartialEq + std::fmt::Debug, const N: usize>(
    name: &str,
    shape: [usize; N],
    element: impl Fn(i64) -> T + Sync,
) {
    let scratch = Scratch::new(&format!("npy-{name}"));
    for workers in [1, 2, 3, 5] {
        let copy = scratch.0.join(format!("{workers}.npy"));
        run(workers, |w| {
            let array = w.npy_file::<T, N>(fixture(name))?;
            assert_eq!(array.shape(), shape);
            let count = shape.iter().product::<usize>() as i64;
            assert_eq!(array.to_vec(w)?, (0..count).map(&element).collect::<Vec<_>>());
            array.save_npy(w, &copy)
        })
        .unwrap();
        // Also byte for byte, if the version is the one that is written.
        let (expected, found) = (fs::read(fixture(name)).unwrap(), fs::read(&copy).unwrap());
        assert!(expected[6] != 1 || expected == found, "{name}");
    }
}

#[test]
fn files_of_numpy_are_read_and_written() {
    check("f4", [4, 2], |k| (k * k - 5) as f32 / 2.0);
    check("f8", [4, 2], |k| (k * k - 5) as f64 / 2.0);
    check("i1", [4, 2], |k| (k * k - 5) as i8);
    check("i2", [4, 2], |k| (k * k - 5) as i16);
    check("i4", [4, 2], |k| (k * k - 5) as i32);
    check("i8", [4, 2], |k| k * k - 5);
    check("u1", [4, 2], |k| (k * k) as u8);
    check("u2", [4, 2], |k| (k * k) as u16);
    check("u4", [4, 2], |k| (k * k) as u32);
    check("u8", [4, 2], |k| (k * k) as u64);
    check("version-2", [3, 1, 4], |k| (k * k - 5) as f32 / 2.0);
    check("version-3", [11], |k| (k * k - 5) as i32);
    check("no-elements", [3, 0], |_| 0.0f32);
}

/// The error of reading `path`, the same on every worker.
fn error_of<T: NpyElement, const N: usize>(path: &Path) -> String {
    let mut first = String::new();
    for workers in 1..=3 {
        let errors = run(workers, |w| {
            let result = w.npy_file::<T, N>(path);
            w.barrier()?;
            Ok(result.err().map_or("no error".into(), |error| error.to_string()))
        });
        for error in errors.unwrap() {
            assert!(first.is_empty() || first == error, "{first}, then {error}");
            first = error;
        }
    }
    assert!(first.starts_with(&format!("{}: ", path.display())), "{first}");
    first
}

#[test]
fn other_contents_are_refused() {
    for (error, what) in [
        (
            error_of::<f64, 2>(&fixture("f4")),
            "it has elements of type '<f4', not '<f8' (f64): read it as an array of its own type",
        ),
        (error_of::<i32, 2>(&fixture("u4")), "it has elements of type '<u4', not '<i4' (i32)"),
        (
            error_of::<f32, 3>(&fixture("f4")),
            "it has the shape [4, 2], not 3 dimensions: read it with as many",
        ),
        (error_of::<f32, 1>(&fixture("scalar")), "it has the shape [], not 1 dimensions"),
        (error_of::<f32, 2>(&fixture("fortran")), "it is in Fortran's order"),
        (error_of::<f32, 2>(&fixture("big-endian")), "its elements are big-endian ('>f4')"),
        (error_of::<f32, 1>(&fixture("record")), "records of several fields"),
        (error_of::<f32, 2>(&fixture("complex")), "elements of type '<c8'"),
        (error_of::<f32, 2>(Path::new("/nowhere/a.npy")), "No such file"),
        (error_of::<f32, 2>(&std::env::temp_dir()), "not a regular file"),
    ] {
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn damaged_files_are_refused() {
    let scratch = Scratch::new("npy-damaged");
    let good = fs::read(fixture("f4")).unwrap();
    for len in 0..good.len() {
        let path = scratch.0.join(format!("{len}.npy"));
        fs::write(&path, &good[..len]).unwrap();
        let error = run(1, |w| Ok(w.npy_file::<f32, 2>(&path).unwrap_err().to_string())).unwrap().remove(0);
        assert!(error.contains(if len < 6 { "not an .npy file" } else { "cut off" }), "{len}: {error}");
    }
    let path = scratch.0.join("more.npy");
    fs::write(&path, [good.as_slice(), b"xyz"].concat()).unwrap();
    assert!(
        error_of::<f32, 2>(&path).contains("it has 3 bytes more than the shape [4, 2] takes: save it again")
    );
    // An extent that no file and no memory holds.
    let text =
        String::from_utf8_lossy(&good[10..128]).replace("(4, 2), }        ", "(4, 1152921504606846976), }");
    let path = scratch.0.join("vast.npy");
    fs::write(&path, [&good[..10], &text.as_bytes()[..118], &good[128..]].concat()).unwrap();
    assert!(error_of::<f32, 2>(&path).contains("cut off: 32 bytes of data are too few"));
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_on_every_worker() {
    let errors = run(3, |w| {
        let array = w.zeros::<f32, 2>([4, 2])?;
        let result: Result<()> = array.save_npy(w, "/nowhere/at/all.npy");
        w.barrier()?;
        Ok(matches!(result, Err(Error::Io { file, .. }) if file == "/nowhere/at/all.npy"))
    });
    assert_eq!(errors.unwrap(), [true; 3]);
}

#[test]
fn elements_of_every_number_type_become_floats() {
    let scratch = Scratch::new("npy-as");
    let path = scratch.0.join("a.npy");
    // More than is read at a time.
    let shape = [30_000, 3];
    macro_rules! comes_back {
        ($($type:ty)*) => {$(
            let value = |[i, k]: [usize; 2]| (i * 3 + k) as u8 as $type;
            let wrong = run(2, |w| {
                w.from_fn(shape, value)?.save_npy(w, &path)?;
                let (single, double) = (w.npy_file_as::<f32, 2>(&path)?, w.npy_file_as::<f64, 2>(&path)?);
                let mut wrong = 0;
                single.for_each(w, |index, x| wrong += usize::from(x != value(index) as f32))?;
                double.for_each(w, |index, x| wrong += usize::from(x != value(index) as f64))?;
                Ok(wrong)
            });
            assert_eq!(wrong.unwrap(), [0, 0], stringify!($type));
        )*};
    }
    comes_back!(i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);
    let numbers = [f64::NAN, f64::INFINITY, 1e300, -1e300, 0.1, -0.0, 1e-300];
    let bits = run(1, |w| {
        w.from_slice([7], &numbers)?.save_npy(w, &path)?;
        Ok(w.npy_file_as::<f32, 1>(&path)?.to_vec(w)?.into_iter().map(f32::to_bits).collect::<Vec<_>>())
    });
    assert_eq!(bits.unwrap()[0][1..], numbers.map(|x| (x as f32).to_bits())[1..]);
    let booleans =
        b"\x93NUMPY\x01\x00\x47\x00{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }             \n";
    fs::write(&path, [&booleans[..], &[1, 0, 1]].concat()).unwrap();
    let read = run(1, |w| w.npy_file_as::<f32, 1>(&path)?.to_vec(w)).unwrap();
    assert_eq!(read[0], [1.0, 0.0, 1.0]);
}

#[test]
fn what_is_no_number_does_not_become_one() {
    for (name, says) in [
        ("big-endian", "elements of type '>f4': little-endian integers and floats"),
        ("complex", "elements of type '<c8': little-endian integers and floats"),
        ("fortran", "it is in Fortran's order"),
    ] {
        let error = run(2, |w| Ok(w.npy_file_as::<f32, 2>(fixture(name)).unwrap_err().to_string())).unwrap();
        assert!(error[0].contains(says) && error[0] == error[1], "{name}: {error:?}");
    }
}
