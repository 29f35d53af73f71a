//! Datagrams of one size to one address, side by side in a buffer of the transport.
use std::net::SocketAddr;

/// A buffer that a transport lends, and into which packets are written, each where it will be sent from.
///
/// All packets go to one address and have one size; the last may be shorter. That is what generic segmentation offload
/// takes in one call.
#[derive(Debug)]
pub struct Batch<'b> {
    buffer: &'b mut [u8],
    max_packets: usize,
    used: usize,
    packets: usize,
    segment: usize,
    closed: bool,
    to: Option<SocketAddr>,
}

impl<'b> Batch<'b> {
    /// An empty batch over `buffer`, of at most `max_packets` packets.
    pub fn new(buffer: &'b mut [u8], max_packets: usize) -> Batch<'b> {
        Batch { buffer, max_packets, used: 0, packets: 0, segment: 0, closed: false, to: None }
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// How many packets were written.
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// The destination; none as long as the batch is empty.
    pub fn destination(&self) -> Option<SocketAddr> {
        self.to
    }

    /// The size of every packet but perhaps the last, in bytes.
    pub fn segment_size(&self) -> usize {
        self.segment
    }

    /// The packets, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.used]
    }

    /// Whether a packet of `size` bytes to `to` may follow.
    pub(crate) fn takes(&self, to: SocketAddr, size: usize) -> bool {
        let fits = self.used + size <= self.buffer.len() && self.packets < self.max_packets;
        fits && (self.packets == 0 || (!self.closed && self.to == Some(to) && size <= self.segment))
    }

    /// The place of the next packet, of `size` bytes to `to`; none if it has to go with another batch.
    pub(crate) fn place(&mut self, to: SocketAddr, size: usize) -> Option<&mut [u8]> {
        if !self.takes(to, size) {
            return None;
        }
        if self.packets == 0 {
            self.segment = size;
            self.to = Some(to);
        }
        self.closed = size < self.segment;
        let start = self.used;
        self.used += size;
        self.packets += 1;
        Some(&mut self.buffer[start..self.used])
    }

    /// Lets no further packet follow.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::Batch;
    use std::net::SocketAddr;

    #[test]
    fn packets_of_one_size_and_a_shorter_last_one_go_together() {
        let mut buffer = [0; 100];
        let to: SocketAddr = "10.0.0.1:1".parse().unwrap();
        let other: SocketAddr = "10.0.0.2:1".parse().unwrap();
        let mut batch = Batch::new(&mut buffer, 4);
        batch.place(to, 30).unwrap().fill(1);
        assert!(batch.place(to, 31).is_none(), "longer than the first");
        assert!(batch.place(other, 30).is_none(), "to somebody else");
        batch.place(to, 30).unwrap().fill(2);
        assert!(!batch.takes(to, 30) || batch.used + 30 <= 100);
        batch.place(to, 10).unwrap().fill(3);
        assert!(batch.place(to, 10).is_none(), "behind a shorter one");
        assert_eq!((batch.packets(), batch.segment_size(), batch.bytes().len()), (3, 30, 70));
        assert_eq!(batch.bytes()[59..61], [2, 3]);
        assert_eq!(batch.destination(), Some(to));
    }

    #[test]
    fn a_batch_ends_with_its_buffer_and_its_count() {
        let to: SocketAddr = "10.0.0.1:1".parse().unwrap();
        let mut buffer = [0; 100];
        let mut batch = Batch::new(&mut buffer, 2);
        assert!(batch.place(to, 101).is_none());
        assert!(batch.place(to, 40).is_some() && batch.place(to, 40).is_some());
        assert!(batch.place(to, 1).is_none(), "the third");
        let mut batch = Batch::new(&mut buffer, 9);
        assert!(batch.place(to, 60).is_some());
        assert!(batch.place(to, 41).is_none(), "behind the end");
    }
}
