//! The memory cgroups that limit this process, of version 1 and 2 of the interface.
//!
//! `/proc/self/cgroup` says which group the process is in, `/proc/self/mountinfo` where its hierarchy is
//! mounted. In a container these two can disagree, because either may be shown relative to a namespace's
//! root; then the part of the path that exists under the mount is walked, at least the mount itself. Limits of
//! groups above the mount cannot be seen, except for the smallest of them under version 1.

use super::file;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

#[cfg(test)]
pub(super) mod tests;

/// Which files a group has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interface {
    V1,
    V2,
}

/// A memory cgroup that this process is in, directly or through a descendant of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Where its files are.
    pub dir: PathBuf,
    /// Its path in the hierarchy, for people, as in `/a/b`.
    pub name: String,
    interface: Interface,
    /// Whether the process is in this very group.
    is_own: bool,
}

/// A group's limit and its use, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Charge {
    /// The limit; `u64::MAX` when there is none.
    pub limit: u64,
    /// Bytes in use that cannot be reclaimed: without clean page cache.
    pub used: u64,
}

/// Limits from here on are none: version 1 has the largest signed number in whole pages.
const UNLIMITED: u64 = 1 << 62;

/// The groups that were found last, and what `/proc/self/cgroup` said then.
static FOUND: Mutex<Option<(String, Arc<[Group]>)>> = Mutex::new(None);

/// The memory cgroups of this process, outermost first; none on a host without the controller. They are looked for again when
/// the process is in another group: the mounts that show a group stay as long as somebody is in it.
///
/// # Errors
/// When files of `/proc` are there and cannot be read.
pub(crate) fn groups() -> io::Result<Arc<[Group]>> {
    let root = Path::new("/");
    let Some(memberships) = memberships(root)? else { return Ok(Arc::default()) };
    // A child that was forked while another thread had it never gets it.
    let mut found = FOUND.try_lock().ok();
    if let Some(Some((last, groups))) = found.as_deref()
        && *last == memberships
    {
        return Ok(groups.clone());
    }
    let groups: Arc<[Group]> = groups_of(root, &memberships)?.into();
    if let Some(found) = &mut found {
        **found = Some((memberships, groups.clone()));
    }
    Ok(groups)
}

/// The same of a host whose files are below `root`.
#[cfg(test)]
pub(super) fn groups_below(root: &Path) -> io::Result<Vec<Group>> {
    memberships(root)?.map_or(Ok(Vec::new()), |memberships| groups_of(root, &memberships))
}

fn memberships(root: &Path) -> io::Result<Option<String>> {
    read_if_present(&root.join("proc/self/cgroup"))
}

/// The groups of these memberships. `root` is `/`, or a directory with the same files below it.
///
/// # Errors
/// When files of `/proc` are there and cannot be read.
fn groups_of(root: &Path, memberships: &str) -> io::Result<Vec<Group>> {
    let mounts = read_if_present(&root.join("proc/self/mountinfo"))?.unwrap_or_default();
    let mut groups = Vec::new();
    for interface in [Interface::V1, Interface::V2] {
        let Some(path) = membership(memberships, interface) else { continue };
        // A hierarchy can be mounted several times; the mount that shows most of the path says most.
        let walks = mounts.lines().filter_map(|line| Mount::parse(line, interface));
        let walks = walks.map(|mount| mount.walk(root, path, interface));
        groups.extend(walks.rev().max_by_key(Vec::len).unwrap_or_default());
    }
    Ok(groups)
}

impl Group {
    /// Reads the group's limit and use.
    ///
    /// Returns `None` when the group limits nothing for this process: it has no memory controller, is hidden
    /// or gone, or is a parent that does not account for its children.
    ///
    /// # Errors
    /// When a file is there and cannot be read or understood; the error names it.
    pub(crate) fn charge(&self) -> io::Result<Option<Charge>> {
        match self.interface {
            Interface::V1 => self.charge_v1(),
            Interface::V2 => self.charge_v2(),
        }
    }

    fn charge_v1(&self) -> io::Result<Option<Charge>> {
        let (limit, used) = (self.number("memory.limit_in_bytes")?, self.number("memory.usage_in_bytes")?);
        let (Some(limit), Some(used)) = (limit, used) else { return Ok(None) };
        if !self.is_own && self.number("memory.use_hierarchy")? == Some(0) {
            return Ok(None);
        }
        let stat = self.stat()?;
        let inherited = stat.get("hierarchical_memory_limit").unwrap_or(u64::MAX);
        let cache = stat.sum(&["total_inactive_file", "total_active_file"]);
        let busy = stat.sum(&["total_dirty", "total_writeback"]);
        let used = used.saturating_sub(cache.saturating_sub(busy));
        Ok(Some(Charge { limit: limit.min(inherited), used }))
    }

    fn charge_v2(&self) -> io::Result<Option<Charge>> {
        let (limit, used) = (self.number("memory.max")?, self.number("memory.current")?);
        let (Some(limit), Some(used)) = (limit, used) else { return Ok(None) };
        // Above `high` nothing is killed, but everything is throttled to a crawl: as good as a limit.
        let high = self.number("memory.high")?.unwrap_or(u64::MAX);
        let stat = self.stat()?;
        let cache = stat.sum(&["inactive_file", "active_file"]);
        let busy = stat.sum(&["file_dirty", "file_writeback"]);
        let used = used.saturating_sub(cache.saturating_sub(busy));
        Ok(Some(Charge { limit: limit.min(high), used }))
    }

    /// The same from as few files as will do: clean page cache counts as used, and `None` also means that the group has no limit.
    ///
    /// # Errors
    /// Those of [`Group::charge`].
    pub(crate) fn rough_charge(&self) -> io::Result<Option<Charge>> {
        let (limit, used) = match self.interface {
            // Only `memory.stat` tells what the group inherits from those that are hidden.
            Interface::V1 if self.is_own => return self.charge_v1(),
            Interface::V1 => (self.number("memory.limit_in_bytes")?, "memory.usage_in_bytes"),
            Interface::V2 => {
                let high = self.number("memory.high")?.unwrap_or(u64::MAX);
                (self.number("memory.max")?.map(|max| max.min(high)), "memory.current")
            }
        };
        let Some(limit) = limit.filter(|limit| *limit < UNLIMITED) else { return Ok(None) };
        Ok(self.number(used)?.map(|used| Charge { limit, used }))
    }

    /// The number in a file of the group, with `max` as `u64::MAX`, or `None` when there is no such file.
    fn number(&self, file: &str) -> io::Result<Option<u64>> {
        let path = self.dir.join(file);
        let Some(text) = read_if_present(&path)? else { return Ok(None) };
        match text.trim() {
            "max" => Ok(Some(u64::MAX)),
            number => number.parse().map(Some).map_err(|_| {
                let message = format!("{}: expected bytes or \"max\", found {number:?}", path.display());
                io::Error::new(io::ErrorKind::InvalidData, message)
            }),
        }
    }

    fn stat(&self) -> io::Result<Stat> {
        Ok(Stat(read_if_present(&self.dir.join("memory.stat"))?.unwrap_or_default()))
    }
}

/// A `memory.stat` file: lines of a key and a number.
struct Stat(String);

impl Stat {
    fn get(&self, key: &str) -> Option<u64> {
        let value = self.0.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        value?.trim().parse().ok()
    }

    fn sum(&self, keys: &[&str]) -> u64 {
        keys.iter().filter_map(|key| self.get(key)).fold(0, u64::saturating_add)
    }
}

/// The process's path in the hierarchy that may control memory, from lines `id:controllers:path`.
fn membership(memberships: &str, interface: Interface) -> Option<&Path> {
    memberships.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let is_it = match interface {
            Interface::V1 => controllers.split(',').any(|controller| controller == "memory"),
            Interface::V2 => id == "0" && controllers.is_empty(),
        };
        is_it.then_some(Path::new(path))
    })
}

/// A mount of a hierarchy.
struct Mount {
    /// Which group of the hierarchy is mounted.
    root: PathBuf,
    /// Where.
    point: PathBuf,
}

impl Mount {
    /// Reads a line `id parent device root point options tags... - type source super-options`, if it is about
    /// the hierarchy that may control memory.
    fn parse(line: &str, interface: Interface) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let (fs_type, options) = (kind.next()?, kind.nth(1)?);
        let is_it = match interface {
            Interface::V1 => fs_type == "cgroup" && options.split(',').any(|option| option == "memory"),
            Interface::V2 => fs_type == "cgroup2",
        };
        let mut place = place.split(' ').skip(3);
        let (root, point) = (unescape(place.next()?), unescape(place.next()?));
        is_it.then_some(Self { root: root.into(), point: point.into() })
    }

    /// The groups from the mount down to `path`, as far as they exist.
    fn walk(&self, root: &Path, path: &Path, interface: Interface) -> Vec<Group> {
        // A path with `..` starts above this namespace's root: nothing of it can be found below the mount.
        let visible = !path.components().any(|component| component == Component::ParentDir);
        let (prefix, below) = match path.strip_prefix(&self.root) {
            Ok(below) if visible => (self.root.as_path(), below),
            _ if visible => (Path::new("/"), path.strip_prefix("/").unwrap_or(path)),
            _ => (self.root.as_path(), Path::new("")),
        };
        let point = root.join(self.point.strip_prefix("/").unwrap_or(&self.point));
        let mut below: Vec<&Path> = below.ancestors().collect();
        below.reverse();
        let dirs = below.into_iter().map(|part| (point.join(part), prefix.join(part)));
        let mut groups: Vec<Group> = dirs
            .take_while(|(dir, _)| dir.is_dir())
            .map(|(dir, name)| Group { dir, name: display(&name), interface, is_own: false })
            .collect();
        // The innermost that can be seen stands for the process's own group.
        if let Some(own) = groups.last_mut() {
            own.is_own = true;
        }
        groups
    }
}

/// A group's path as people write it: without the slash that joining an empty path leaves behind.
fn display(path: &Path) -> String {
    let text = path.display().to_string();
    let trimmed = text.trim_end_matches('/');
    if trimmed.is_empty() { "/".to_owned() } else { trimmed.to_owned() }
}

/// Undoes mountinfo's `\ooo` for space, tab, newline and backslash.
fn unescape(field: &str) -> String {
    field.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// The content of a file, or `None` when there is none or we may not see it.
fn read_if_present(path: &Path) -> io::Result<Option<String>> {
    use io::ErrorKind::{NotFound, PermissionDenied};
    match file::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), NotFound | PermissionDenied) => Ok(None),
        // Reading gives this when the group was removed after the file was opened.
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
    }
}
