//! Collective calls of user programs: `root`, `broadcast`, `agree`, `all_reduce`.
use super::{Context, Outcome};
use crate::error::{Error, Result};
use crate::site::Site;
use hectare_dsm::Element;
use hectare_dsm::bytemuck;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(super) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>> {
    postcard::to_stdvec(value).map_err(|error| Error::Message(format!("encoded: {error}")))
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|error| Error::Message(format!("decoded: {error}")))
}

impl Context<'_> {
    /// Runs `body` on worker 0 alone, for output. Not collective: nobody waits.
    ///
    /// ```
    /// hectare_orion::run(2, |w| {
    ///     w.root(|| println!("once"));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    pub fn root<R>(&self, body: impl FnOnce() -> R) -> Option<R> {
        (self.rank() == 0).then(body)
    }

    /// Runs `body` on worker 0 and returns its value on every worker. Collective.
    ///
    /// # Errors
    /// [`Error::PeerFailed`] on the others if `body` fails, [`Error::Message`] for values that serde cannot
    /// encode, [`Error::Diverged`], [`Error::WorkerLost`].
    ///
    /// ```
    /// let seeds = hectare_orion::run(2, |w| w.broadcast(|| Ok(42u64)))?;
    /// assert_eq!(seeds, [42, 42]);
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    #[track_caller]
    pub fn broadcast<T: Serialize + DeserializeOwned>(
        &mut self,
        body: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let site = Site::here();
        let said = if self.rank() == 0 { body().and_then(|value| encode(&value)) } else { Ok(Vec::new()) };
        match said {
            Err(error) => self.agree_on(site, Err(error)),
            Ok(bytes) => {
                let mut value = None;
                self.exchange(site, Outcome::Value(&bytes), |rank, bytes| {
                    if rank == 0 {
                        value = Some(decode(bytes)?);
                    }
                    Ok(())
                })?;
                value.ok_or_else(|| Error::Message("found".into()))
            }
        }
    }

    /// Checks that every worker has the same value. Collective.
    ///
    /// # Errors
    /// [`Error::ValueMismatch`] naming a worker with another value than worker 0, [`Error::Message`],
    /// [`Error::Diverged`], [`Error::WorkerLost`].
    #[track_caller]
    pub fn agree<T: Serialize>(&mut self, value: T) -> Result<T> {
        let site = Site::here();
        let bytes = encode(&value)?;
        let mut first: Vec<u8> = Vec::new();
        let mut other = None;
        self.exchange(site, Outcome::Value(&bytes), |rank, bytes| {
            if rank == 0 {
                first = bytes.to_vec();
            } else if first != bytes {
                other = other.or(Some(rank));
            }
            Ok(())
        })?;
        match other {
            None => Ok(value),
            Some(rank) => Err(Error::ValueMismatch { site: site.to_string(), rank }),
        }
    }

    /// Combines one value of each worker, in the order of their ranks; every worker gets the result.
    /// Collective.
    ///
    /// ```
    /// let sums = hectare_orion::run(3, |w| w.all_reduce(u64::from(w.rank()), |a, b| a + b))?;
    /// assert_eq!(sums, [3, 3, 3]);
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Diverged`], [`Error::WorkerLost`].
    #[track_caller]
    pub fn all_reduce<T: Element>(&mut self, value: T, combine: impl Fn(T, T) -> T) -> Result<T> {
        let mut sum = None;
        self.exchange(Site::here(), Outcome::Value(bytemuck::bytes_of(&value)), |_, bytes| {
            let value = bytemuck::pod_read_unaligned(bytes);
            sum = Some(sum.map_or(value, |sum| combine(sum, value)));
            Ok(())
        })?;
        Ok(sum.unwrap_or(value))
    }
}
