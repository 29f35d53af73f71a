//! NumPy's `.npy` files: read and written in row-major order, little-endian, with elements of one number each.
use super::dense::DistArray;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::file::{self, NewFile};
use crate::site::Site;
use hectare_data::npy::{Header, PREAMBLE, text_range};
use hectare_dsm::{Element, bytemuck};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

mod sealed {
    pub trait Sealed {}
}

/// An element type that `.npy` files hold: floats of 4 and 8 bytes, integers of 1 to 8.
pub trait NpyElement: Element + sealed::Sealed {
    /// Its name in NumPy, such as `<f4`.
    const DESCR: &'static str;
}

macro_rules! npy_element {
    ($($type:ty: $descr:literal),*) => {$(
        impl sealed::Sealed for $type {}
        impl NpyElement for $type {
            const DESCR: &'static str = $descr;
        }
    )*};
}
npy_element!(
    f32: "<f4", f64: "<f8", i8: "|i1", i16: "<i2", i32: "<i4", i64: "<i8", u8: "|u1", u16: "<u2", u32: "<u4", u64: "<u8"
);

impl Context<'_> {
    /// An array from a `.npy` file, as `numpy.save` writes it. Every worker reads its part. Collective.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("hectare-npy-{}.npy", std::process::id()));
    /// hectare_orion::run(2, |w| {
    ///     let a = w.from_fn([5, 3], |[i, j]| (i * 3 + j) as f32)?;
    ///     a.save_npy(w, &path)?;
    ///     let b = w.npy_file::<f32, 2>(&path)?;
    ///     assert_eq!(b.read(w)?.row(4), [12.0, 13.0, 14.0]);
    ///     Ok(())
    /// })?;
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Format`] if it is no such file, was cut off, or has another element type, number of dimensions or
    /// order (Fortran's); [`Error::Io`]: the same error on every worker. And those of [`Context::zeros`].
    #[track_caller]
    pub fn npy_file<T: NpyElement, const N: usize>(
        &mut self,
        path: impl AsRef<Path>,
    ) -> Result<DistArray<T, N>> {
        let (site, path) = (Site::here(), path.as_ref());
        let opened = open::<_, N>(path, |descr| element::<T>(descr).map(|()| ((), size_of::<T>())));
        let (mut file, start, shape, ((), _)) = self.agree_on_same(site, opened)?;
        let is_same = self.see_same_file(site, path)?;
        self.agree_on_same(site, is_same)?;
        DistArray::make(self, site, shape, |first, data| {
            let at = start + first * size_of::<T>() as u64;
            let read =
                file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(bytemuck::cast_slice_mut(data)));
            read.map_err(|source| file::failed(path, source))
        })
    }
}

/// The file, where its data begin, their shape, and what `element` says of the type of its elements, whose size is behind.
#[allow(clippy::type_complexity)]
pub(super) fn open<E, const N: usize>(
    path: &Path,
    element: impl Fn(&str) -> Result<(E, usize), Mismatch>,
) -> Result<(File, u64, [usize; N], (E, usize))> {
    let io = |source| file::failed(path, source);
    let wrong = |what: String| Error::Format { file: path.display().to_string(), what };
    // Before it is opened: a pipe is open only when somebody writes into it.
    let metadata = std::fs::metadata(path).map_err(io)?;
    if !metadata.is_file() {
        return Err(wrong("not a regular file".into()));
    }
    let mut file = File::open(path).map_err(io)?;
    let mut beginning = Vec::with_capacity(PREAMBLE);
    (&file).take(PREAMBLE as u64).read_to_end(&mut beginning).map_err(io)?;
    let range = text_range(&beginning).map_err(|error| wrong(error.to_string()))?;
    let start = range.end as u64;
    if start > metadata.len() {
        return Err(wrong("cut off within its header".into()));
    }
    let mut text = vec![0; range.len()];
    file.seek(SeekFrom::Start(range.start as u64)).map_err(io)?;
    file.read_exact(&mut text).map_err(io)?;
    let header = Header::parse(&text).map_err(|error| wrong(error.to_string()))?;
    let checked = element(&header.descr)
        .and_then(|element| Ok((check::<N>(&header, metadata.len() - start, element.1)?, element)));
    let (shape, element) = checked.map_err(|error| wrong(error.to_string()))?;
    Ok((file, start, shape, element))
}

/// Why the array of a file is not the one that is asked for.
#[derive(Debug, thiserror::Error)]
pub(super) enum Mismatch {
    #[error(
        "it has elements of type '{found}', not '{asked}' ({type_name}): read it as an array of its own type, or save it with `astype('{asked}')`"
    )]
    Element { found: String, asked: &'static str, type_name: &'static str },
    #[error(
        "it has elements of type '{found}': little-endian integers and floats of up to 64 bits are read, so save it with `astype`"
    )]
    NoNumber { found: String },
    #[error("its elements are big-endian ('{found}'): save them as '{asked}'")]
    BigEndian { found: String, asked: &'static str },
    #[error("it is in Fortran's order: save it with numpy.ascontiguousarray")]
    FortranOrder,
    #[error(
        "it has the shape {shape:?}, not {dimensions} dimensions: read it with as many as it has, or save it with `reshape`"
    )]
    Dimensions { shape: Vec<usize>, dimensions: usize },
    #[error("it has {bytes} bytes more than the shape {shape:?} takes: save it again")]
    TooLong { bytes: u64, shape: Vec<usize> },
    #[error("cut off: {bytes} bytes of data are too few for the shape {shape:?}: copy or save it again")]
    TooShort { bytes: u64, shape: Vec<usize> },
}

/// Whether elements of this type in NumPy's notation lie in the file as those of type `T` in memory.
pub(super) fn is_of<T: NpyElement>(descr: &str) -> bool {
    const { assert!(cfg!(target_endian = "little"), "elements are read as they lie in the file") }
    // The byte order of single bytes does not matter, and `=` is that of the machine that reads.
    let (order, kind) = descr.split_at_checked(1).unwrap_or_default();
    let here = ["<", "=", "|"].contains(&order) || order == ">" && size_of::<T>() == 1;
    here && kind == &T::DESCR[1..]
}

/// Refuses elements of another type than `T`.
fn element<T: NpyElement>(descr: &str) -> Result<(), Mismatch> {
    let (found, asked) = (descr.to_owned(), T::DESCR);
    match descr.strip_prefix('>') {
        _ if is_of::<T>(descr) => Ok(()),
        Some(kind) if kind == &asked[1..] => Err(Mismatch::BigEndian { found, asked }),
        _ => Err(Mismatch::Element { found, asked, type_name: std::any::type_name::<T>() }),
    }
}

/// The shape, if the file holds elements of `size` bytes as asked for in `bytes` bytes of data.
fn check<const N: usize>(header: &Header, bytes: u64, size: usize) -> Result<[usize; N], Mismatch> {
    let Header { fortran_order, shape, .. } = header;
    if *fortran_order {
        return Err(Mismatch::FortranOrder);
    }
    let extents = <[usize; N]>::try_from(shape.as_slice())
        .map_err(|_| Mismatch::Dimensions { shape: shape.clone(), dimensions: N })?;
    let expected = shape.iter().try_fold(size as u64, |bytes, extent| bytes.checked_mul(*extent as u64));
    match expected {
        Some(expected) if expected == bytes => Ok(extents),
        Some(expected) if expected < bytes => {
            Err(Mismatch::TooLong { bytes: bytes - expected, shape: shape.clone() })
        }
        _ => Err(Mismatch::TooShort { bytes, shape: shape.clone() }),
    }
}

impl<T: NpyElement, const N: usize> DistArray<T, N> {
    /// Saves the array as a `.npy` file, for `numpy.load`. An old file of this name stays whole until the new
    /// one is complete. Collective.
    ///
    /// # Errors
    /// [`Error::Io`], on every worker; [`Error::Poisoned`], [`Error::Diverged`], [`Error::WorkerLost`].
    #[track_caller]
    pub fn save_npy(&self, context: &mut Context<'_>, path: impl AsRef<Path>) -> Result<()> {
        let site = Site::here();
        let saved = context.root(|| self.write_npy(context, path.as_ref()));
        context.agree_on_same(site, saved.unwrap_or(Ok(())))
    }

    fn write_npy(&self, context: &Context<'_>, path: &Path) -> Result<()> {
        let mut out = NewFile::create(path)?;
        let shape = self.shape().to_vec();
        out.write(&Header { descr: T::DESCR.into(), fortran_order: false, shape }.to_bytes())?;
        self.for_each_run(context, |run| out.write(bytemuck::cast_slice(run)))?;
        out.finish()
    }
}
