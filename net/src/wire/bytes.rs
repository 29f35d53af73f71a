//! Numbers and names as bytes, little-endian; reading checks every length.
use super::FrameError;
use crate::types::{AreaId, Description, ElementType, GroupId, HostId, MAX_NAME, Version};

pub(crate) struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(crate) fn new(rest: &'b [u8]) -> Reader<'b> {
        Reader { rest }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'b [u8], FrameError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(FrameError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(FrameError::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, FrameError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, FrameError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, FrameError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, FrameError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn u128(&mut self) -> Result<u128, FrameError> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    pub(crate) fn bool(&mut self) -> Result<bool, FrameError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(FrameError::Value { of: "a yes or a no" }),
        }
    }

    /// 0 or 1, which say whether `value` follows.
    pub(crate) fn option<T>(
        &mut self,
        value: impl FnOnce(&mut Self) -> Result<T, FrameError>,
    ) -> Result<Option<T>, FrameError> {
        match self.u8()? {
            0 => Ok(None),
            1 => value(self).map(Some),
            _ => Err(FrameError::Value { of: "an optional field" }),
        }
    }

    pub(crate) fn host(&mut self) -> Result<HostId, FrameError> {
        self.u16().map(HostId)
    }

    pub(crate) fn group(&mut self) -> Result<GroupId, FrameError> {
        self.u64().map(GroupId)
    }

    pub(crate) fn area(&mut self) -> Result<AreaId, FrameError> {
        Ok(AreaId { group: self.group()?, member: self.u16()? })
    }

    pub(crate) fn version(&mut self) -> Result<Version, FrameError> {
        Ok(Version { term: self.u64()?, counter: self.u64()? })
    }

    pub(crate) fn name(&mut self) -> Result<String, FrameError> {
        let len = self.u8()?.into();
        let text = std::str::from_utf8(self.take(len)?).map_err(|_| FrameError::Value { of: "a name" })?;
        Ok(text.to_owned())
    }

    pub(crate) fn element(&mut self) -> Result<ElementType, FrameError> {
        Ok(ElementType { kind: self.u32()?, size: self.u32()?, align: self.u32()? })
    }

    pub(crate) fn description(&mut self) -> Result<Description, FrameError> {
        let (name, group, element) = (self.name()?, self.name()?, self.element()?);
        let (bytes, row) = (self.u64()?, self.u32()?);
        // Lines are named by 32 bits.
        if bytes > crate::LINE << 32 {
            return Err(FrameError::Value { of: "an area's length" });
        }
        let on_demand = self.bool()?;
        Ok(Description { name, group, element, bytes, row, on_demand })
    }
}

/// Writing never fails; what has a limit (names, lists) was checked where it entered the node.
pub(crate) trait Put {
    fn put(&mut self, bytes: &[u8]);

    fn u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    fn u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    fn u128(&mut self, value: u128) {
        self.put(&value.to_le_bytes());
    }

    fn option<T>(&mut self, value: Option<&T>, put: impl FnOnce(&mut Self, &T)) {
        self.u8(value.is_some().into());
        if let Some(value) = value {
            put(self, value);
        }
    }

    fn host(&mut self, host: HostId) {
        self.u16(host.0);
    }

    fn group(&mut self, group: GroupId) {
        self.u64(group.0);
    }

    fn area(&mut self, area: AreaId) {
        self.group(area.group);
        self.u16(area.member);
    }

    fn version(&mut self, version: &Version) {
        self.u64(version.term);
        self.u64(version.counter);
    }

    fn name(&mut self, name: &str) {
        assert!(name.len() <= MAX_NAME);
        self.u8(name.len() as u8);
        self.put(name.as_bytes());
    }

    fn element(&mut self, element: ElementType) {
        self.u32(element.kind);
        self.u32(element.size);
        self.u32(element.align);
    }

    fn description(&mut self, description: &Description) {
        self.name(&description.name);
        self.name(&description.group);
        self.element(description.element);
        self.u64(description.bytes);
        self.u32(description.row);
        self.u8(description.on_demand.into());
    }
}

impl Put for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
