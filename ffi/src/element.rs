//! Element types, and areas whose element type is known at run time only.
use crate::status::{Failure, Outcome, ha_status::*};
use hectare_dsm::tasks::{InPlace, RowRun, TaskRun};
use hectare_dsm::{
    Area, AreaSpec, Error, Lent, Number, Opened, Owned, Rank, RawLog, Synced, Version, Worker,
};
use std::any::Any;
use std::ops::Range;
use std::time::Duration;

/// Element types of areas.
///
/// A process that attaches to an area names the type that it was created with. Structs are areas of `HA_U8` with rows
/// of the struct's size (`ha_area_options.row`).
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ha_type {
    /// 8 bits, unsigned; also bytes of any kind.
    HA_U8 = 1,
    /// 8 bits, signed.
    HA_I8 = 2,
    /// 16 bits, unsigned.
    HA_U16 = 3,
    /// 16 bits, signed.
    HA_I16 = 4,
    /// 32 bits, unsigned.
    HA_U32 = 5,
    /// 32 bits, signed.
    HA_I32 = 6,
    /// 64 bits, unsigned.
    HA_U64 = 7,
    /// 64 bits, signed.
    HA_I64 = 8,
    /// `float`.
    HA_F32 = 9,
    /// `double`.
    HA_F64 = 10,
}

/// An `ha_type` as it comes from C, where it may be any number.
pub type ha_type_in = u32;

/// Evaluates the expression with `$T` as the element type that `$type` names.
macro_rules! with_type {
    ($type:expr, $T:ident => $body:expr) => {{
        use $crate::element::ha_type as kind;
        let asked: u32 = $type;
        macro_rules! as_type {
            ($t:ty) => {{
                type $T = $t;
                $body
            }};
        }
        match asked {
            t if t == kind::HA_U8 as u32 => as_type!(u8),
            t if t == kind::HA_I8 as u32 => as_type!(i8),
            t if t == kind::HA_U16 as u32 => as_type!(u16),
            t if t == kind::HA_I16 as u32 => as_type!(i16),
            t if t == kind::HA_U32 as u32 => as_type!(u32),
            t if t == kind::HA_I32 as u32 => as_type!(i32),
            t if t == kind::HA_U64 as u32 => as_type!(u64),
            t if t == kind::HA_I64 as u32 => as_type!(i64),
            t if t == kind::HA_F32 as u32 => as_type!(f32),
            t if t == kind::HA_F64 as u32 => as_type!(f64),
            other => Err($crate::element::no_type(other)),
        }
    }};
}
pub(crate) use with_type;

#[cold]
pub(crate) fn no_type(number: u32) -> Failure {
    Failure::new(HA_BAD_ARGUMENT, format!("{number} is no ha_type"))
}

/// An area for reading, of whatever type.
pub(crate) trait AnyArea {
    fn name(&self) -> &str;
    fn len(&self) -> usize;
    fn row_len(&self) -> usize;
    fn element_size(&self) -> usize;
    /// The `Area<T>` itself.
    fn any(&self) -> &dyn Any;

    fn read(&self, worker: &Worker) -> Result<*const u8, Error>;
    fn read_lent(&self, worker: &Worker) -> Result<*const u8, Error>;
    fn version(&self, worker: &Worker) -> Result<Version, Error>;
    fn newest(&self) -> Option<Version>;
    fn timestamp_ns(&self, worker: &Worker) -> Result<u64, Error>;
    fn age(&self, worker: &Worker) -> Result<Duration, Error>;
    fn clock(&self, worker: &Worker) -> Result<u64, Error>;
    fn changed_since(&self, worker: &Worker, since: Version) -> Result<Vec<Range<usize>>, Error>;
    fn seal(&self);
    fn request_sync(&self);
    fn in_place(&self) -> InPlace;
    /// Where it begins, while it is array `array` of a run.
    fn start_of_rows(&self, run: &RowRun, array: usize) -> Result<*mut u8, Error>;
    /// The same, of a run of tasks.
    fn start_in_tasks(&self, run: &TaskRun, array: usize) -> Result<*mut u8, Error>;

    fn sync(&self, worker: &mut Worker) -> Result<Synced, Error>;
    fn wait_for(&self, worker: &mut Worker, version: Version, limit: Duration) -> Result<Version, Error>;
    fn wait_fresher(&self, worker: &mut Worker, age: Duration, limit: Duration) -> Result<(), Error>;
    fn wait_clock(&self, worker: &mut Worker, staleness: u64, limit: Duration) -> Result<(), Error>;
    fn take(&self, worker: &mut Worker, limit: Duration) -> Result<Box<dyn AnyOwned>, Error>;
    fn try_take(&self, worker: &Worker) -> Result<Option<Box<dyn AnyOwned>>, Error>;
    fn is_owned_by(&self, worker: &Worker) -> bool;
}

/// An area for writing, of whatever type.
pub(crate) trait AnyOwned {
    fn area(&self) -> Box<dyn AnyArea>;
    fn element_size(&self) -> usize;
    fn pointer(&mut self, worker: &Worker) -> Result<*mut u8, Error>;
    fn raw_log(&self, worker: &Worker) -> Result<Option<RawLog>, Error>;
    fn log(&mut self, worker: &Worker, range: Range<usize>) -> Result<(), Error>;
    fn log_rows(&mut self, worker: &Worker, rows: Range<usize>) -> Result<(), Error>;
    fn give(self: Box<Self>, worker: &Worker, to: Rank) -> Result<(), Refused>;
    fn give_published(self: Box<Self>, worker: &mut Worker, to: Rank) -> Result<(), Refused>;
    fn lend(self: Box<Self>, worker: &Worker) -> Result<Box<dyn AnyLent>, Refused>;
    fn open_to_tasks(self: Box<Self>, worker: &mut Worker) -> Result<Box<dyn AnyOpened>, Refused>;
    fn delete(self: Box<Self>, worker: &mut Worker) -> Result<(), Error>;
}

/// A refused hand-over: why, and the area, which stays.
pub(crate) struct Refused(pub(crate) Error, pub(crate) Box<dyn AnyOwned>);

/// A lent area, of whatever type.
pub(crate) trait AnyLent {
    fn recall(self: Box<Self>, worker: &mut Worker) -> Result<Box<dyn AnyOwned>, Error>;
    fn delete(self: Box<Self>, worker: &mut Worker) -> Result<(), Error>;
}

/// An area that is open to a run, of whatever type.
pub(crate) trait AnyOpened {
    fn close(self: Box<Self>, worker: &mut Worker) -> Result<Box<dyn AnyOwned>, Error>;
}

impl<T: Number> AnyArea for Area<T> {
    fn name(&self) -> &str {
        Area::name(self)
    }
    fn len(&self) -> usize {
        Area::len(self)
    }
    fn row_len(&self) -> usize {
        Area::row_len(self)
    }
    fn element_size(&self) -> usize {
        size_of::<T>()
    }
    fn any(&self) -> &dyn Any {
        self
    }
    fn read(&self, worker: &Worker) -> Result<*const u8, Error> {
        Ok(Area::read(self, worker)?.as_ptr().cast())
    }
    fn read_lent(&self, worker: &Worker) -> Result<*const u8, Error> {
        Ok(Area::read_lent(self, worker)?.as_ptr().cast())
    }
    fn version(&self, worker: &Worker) -> Result<Version, Error> {
        Area::version(self, worker)
    }
    fn newest(&self) -> Option<Version> {
        self.newest_version()
    }
    fn timestamp_ns(&self, worker: &Worker) -> Result<u64, Error> {
        Area::timestamp_ns(self, worker)
    }
    fn age(&self, worker: &Worker) -> Result<Duration, Error> {
        Area::age(self, worker)
    }
    fn clock(&self, worker: &Worker) -> Result<u64, Error> {
        Area::clock(self, worker)
    }
    fn changed_since(&self, worker: &Worker, since: Version) -> Result<Vec<Range<usize>>, Error> {
        Area::changed_since(self, worker, since)
    }
    fn seal(&self) {
        Area::seal(self);
    }
    fn request_sync(&self) {
        Area::request_sync(self);
    }
    fn in_place(&self) -> InPlace {
        Area::in_place(self)
    }
    fn start_of_rows(&self, run: &RowRun, array: usize) -> Result<*mut u8, Error> {
        Ok(run.as_ptr(self, array)?.cast())
    }
    fn start_in_tasks(&self, run: &TaskRun, array: usize) -> Result<*mut u8, Error> {
        Ok(run.as_ptr(self, array)?.cast())
    }
    fn sync(&self, worker: &mut Worker) -> Result<Synced, Error> {
        worker.sync_area(self)
    }
    fn wait_for(&self, worker: &mut Worker, version: Version, limit: Duration) -> Result<Version, Error> {
        worker.wait_for(self, version, limit)
    }
    fn wait_fresher(&self, worker: &mut Worker, age: Duration, limit: Duration) -> Result<(), Error> {
        worker.wait_fresher_than(self, age, limit)
    }
    fn wait_clock(&self, worker: &mut Worker, staleness: u64, limit: Duration) -> Result<(), Error> {
        worker.wait_clock_of(self, staleness, limit)
    }
    fn take(&self, worker: &mut Worker, limit: Duration) -> Result<Box<dyn AnyOwned>, Error> {
        let taken =
            if limit == Duration::MAX { Area::take(self, worker)? } else { self.take_within(worker, limit)? };
        Ok(Box::new(taken))
    }
    fn is_owned_by(&self, worker: &Worker) -> bool {
        Area::is_owned_by(self, worker)
    }

    fn try_take(&self, worker: &Worker) -> Result<Option<Box<dyn AnyOwned>>, Error> {
        Ok(Area::try_take(self, worker)?.map(|taken| Box::new(taken) as Box<dyn AnyOwned>))
    }
}

impl<T: Number> AnyOwned for Owned<T> {
    fn area(&self) -> Box<dyn AnyArea> {
        Box::new(Owned::area(self))
    }
    fn element_size(&self) -> usize {
        size_of::<T>()
    }
    fn pointer(&mut self, worker: &Worker) -> Result<*mut u8, Error> {
        Ok(self.as_mut_ptr(worker)?.cast())
    }
    fn raw_log(&self, worker: &Worker) -> Result<Option<RawLog>, Error> {
        Owned::raw_log(self, worker)
    }
    fn log(&mut self, worker: &Worker, range: Range<usize>) -> Result<(), Error> {
        Owned::log(self, worker, range)
    }
    fn log_rows(&mut self, worker: &Worker, rows: Range<usize>) -> Result<(), Error> {
        Owned::log_rows(self, worker, rows)
    }
    fn give(self: Box<Self>, worker: &Worker, to: Rank) -> Result<(), Refused> {
        (*self).give(worker, to).map_err(|refused| Refused(refused.error, Box::new(refused.owned)))
    }
    fn give_published(self: Box<Self>, worker: &mut Worker, to: Rank) -> Result<(), Refused> {
        (*self).give_published(worker, to).map_err(|refused| Refused(refused.error, Box::new(refused.owned)))
    }
    fn lend(self: Box<Self>, worker: &Worker) -> Result<Box<dyn AnyLent>, Refused> {
        let lent = (*self).lend(worker).map_err(|refused| Refused(refused.error, Box::new(refused.owned)))?;
        Ok(Box::new(lent))
    }
    fn open_to_tasks(self: Box<Self>, worker: &mut Worker) -> Result<Box<dyn AnyOpened>, Refused> {
        let opened = (*self).open_to_tasks_published(worker);
        Ok(Box::new(opened.map_err(|refused| Refused(refused.error, Box::new(refused.owned)))?))
    }
    fn delete(self: Box<Self>, worker: &mut Worker) -> Result<(), Error> {
        (*self).delete(worker)
    }
}

impl<T: Number> AnyLent for Lent<T> {
    fn recall(self: Box<Self>, worker: &mut Worker) -> Result<Box<dyn AnyOwned>, Error> {
        Ok(Box::new((*self).recall(worker)?.finish(worker)?))
    }
    fn delete(self: Box<Self>, worker: &mut Worker) -> Result<(), Error> {
        (*self).delete(worker)
    }
}

impl<T: Number> AnyOpened for Opened<T> {
    fn close(self: Box<Self>, worker: &mut Worker) -> Result<Box<dyn AnyOwned>, Error> {
        Ok(Box::new((*self).close(worker)?.finish(worker)?))
    }
}

/// Creates an area owned by the worker.
pub(crate) fn create(
    worker: &mut Worker,
    element_type: u32,
    spec: AreaSpec,
    len: usize,
) -> Outcome<Box<dyn AnyOwned>> {
    with_type!(element_type, T => Ok(Box::new(worker.create::<T>(spec, len)?) as Box<dyn AnyOwned>))
}

/// Attaches to an area that is on this host.
pub(crate) fn attach_here(worker: &Worker, element_type: u32, name: &str) -> Outcome<Box<dyn AnyArea>> {
    with_type!(element_type, T => Ok(Box::new(worker.attach_here::<T>(name)?) as Box<dyn AnyArea>))
}

/// Attaches to an area, waiting for it to be created if `limit` is not zero.
pub(crate) fn attach(
    worker: &mut Worker,
    element_type: u32,
    name: &str,
    limit: Duration,
) -> Outcome<Box<dyn AnyArea>> {
    with_type!(element_type, T => {
        let area =
            if limit.is_zero() { worker.attach::<T>(name)? } else { worker.attach_within::<T>(name, limit)? };
        Ok(Box::new(area) as Box<dyn AnyArea>)
    })
}
