//! `.npy` files whose elements become those of another type.
use super::dense::DistArray;
use super::npy::{Mismatch, NpyElement, is_of, open};
use crate::context::Context;
use crate::error::Result;
use crate::file;
use crate::site::Site;
use hectare_dsm::bytemuck;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes read at a time.
const CHUNK: usize = 1 << 16;

mod sealed {
    pub trait Sealed {}
}

/// A floating-point type that numbers of every other type can be made: of what it cannot hold, the nearest.
pub trait FromNumber: NpyElement + sealed::Sealed {
    /// A number of 64 bits or fewer.
    fn from_f64(number: f64) -> Self;
    /// A whole number.
    fn from_i128(number: i128) -> Self;
}

macro_rules! from_number {
    ($($type:ty),*) => {$(
        impl sealed::Sealed for $type {}
        impl FromNumber for $type {
            fn from_f64(number: f64) -> $type {
                number as $type
            }
            fn from_i128(number: i128) -> $type {
                number as $type
            }
        }
    )*};
}
from_number!(f32, f64);

/// Reads elements of a type, and makes others of them.
type Convert<T> = fn(&[u8], &mut [T]);

fn floats<S: NpyElement + Into<f64>, T: FromNumber>(bytes: &[u8], to: &mut [T]) {
    let numbers = bytes.chunks_exact(size_of::<S>()).map(bytemuck::pod_read_unaligned::<S>);
    to.iter_mut().zip(numbers).for_each(|(to, number)| *to = T::from_f64(number.into()));
}

fn integers<S: NpyElement + Into<i128>, T: FromNumber>(bytes: &[u8], to: &mut [T]) {
    let numbers = bytes.chunks_exact(size_of::<S>()).map(bytemuck::pod_read_unaligned::<S>);
    to.iter_mut().zip(numbers).for_each(|(to, number)| *to = T::from_i128(number.into()));
}

fn booleans<T: FromNumber>(bytes: &[u8], to: &mut [T]) {
    to.iter_mut().zip(bytes).for_each(|(to, byte)| *to = T::from_i128(i128::from(*byte != 0)));
}

/// How elements of this type in NumPy's notation are converted, and how many bytes they have.
fn converter<T: FromNumber>(descr: &str) -> Result<(Convert<T>, usize), Mismatch> {
    macro_rules! known {
        ($($how:ident: $($type:ty)*;)*) => {$($(
            if is_of::<$type>(descr) {
                return Ok(($how::<$type, T>, size_of::<$type>()));
            }
        )*)*};
    }
    known! { floats: f32 f64; integers: i8 i16 i32 i64 u8 u16 u32 u64; }
    match descr {
        "|b1" => Ok((booleans::<T>, 1)),
        _ => Err(Mismatch::NoNumber { found: descr.into() }),
    }
}

impl Context<'_> {
    /// Like [`Context::npy_file`], with elements of any type that NumPy calls float32, float64, int8 to int64, uint8 to uint64 or
    /// bool, each as the nearest number that `T` has. A number that is too large for `T` becomes infinite. Collective.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("hectare-npy-as-{}.npy", std::process::id()));
    /// hectare_orion::run(2, |w| {
    ///     w.from_fn([5, 3], |[i, j]| (i * 3 + j) as i64)?.save_npy(w, &path)?;
    ///     let a = w.npy_file_as::<f32, 2>(&path)?;
    ///     assert_eq!(a.read(w)?.row(4), [12.0, 13.0, 14.0]);
    ///     Ok(())
    /// })?;
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Context::npy_file`].
    #[track_caller]
    pub fn npy_file_as<T: FromNumber, const N: usize>(
        &mut self,
        path: impl AsRef<Path>,
    ) -> Result<DistArray<T, N>> {
        let (site, path) = (Site::here(), path.as_ref());
        let opened = open::<_, N>(path, converter::<T>);
        let (mut file, start, shape, (convert, size)) = self.agree_on_same(site, opened)?;
        let is_same = self.see_same_file(site, path)?;
        self.agree_on_same(site, is_same)?;
        DistArray::make(self, site, shape, |first, data| {
            let at = start + first * size as u64;
            read(&mut file, at, data, convert, size).map_err(|source| file::failed(path, source))
        })
    }
}

/// Elements of `size` bytes from byte `at` on.
fn read<T>(
    file: &mut File,
    at: u64,
    data: &mut [T],
    convert: Convert<T>,
    size: usize,
) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = vec![0; CHUNK];
    for part in data.chunks_mut(CHUNK / size) {
        let bytes = &mut bytes[..part.len() * size];
        file.read_exact(bytes)?;
        convert(bytes, part);
    }
    Ok(())
}
