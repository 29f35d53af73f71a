//! A client hears why it is refused, also when the daemon has closed the connection by then.
use hectare_wire::{Connection, Error, Refusal, Reply, Request, RunDir, Socket, encode};

fn refusal() -> Refusal {
    Refusal::Quota { what: "connections".into(), asked: 2, limit: 1, by: "max_clients".into() }
}

fn accepted(listener: &Socket) -> Socket {
    loop {
        if let Some(socket) = listener.accept().unwrap() {
            return socket;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn last_words_are_heard() {
    let top = tempfile::tempdir().unwrap();
    let dir = RunDir::at(top.path().join("run"));
    dir.make().unwrap();
    let listener = Socket::listen(&dir.socket()).unwrap();
    let refuse = |socket: Socket| socket.send(&encode(&Reply::Refused(refusal())).unwrap(), None).unwrap();
    let is_told = |asked: hectare_wire::Result<_>| match asked {
        Err(Error::Refused(said)) => assert_eq!(said, refusal()),
        other => panic!("{:?}", other.map(|(reply, _): (Reply, _)| reply)),
    };
    // Refused and closed before it asks.
    let client = Connection::open(&dir).unwrap();
    refuse(accepted(&listener));
    is_told(client.ask(&Request::Ping));
    // Closed with its question unread.
    let client = Connection::open(&dir).unwrap();
    std::thread::scope(|scope| {
        let asks = scope.spawn(|| client.ask(&Request::Ping));
        let socket = accepted(&listener);
        // Readable, and not read.
        let mut fds = [rustix::event::PollFd::new(&socket, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut fds, None).unwrap();
        refuse(socket);
        is_told(asks.join().unwrap());
    });
    // Nothing said.
    let client = Connection::open(&dir).unwrap();
    drop(accepted(&listener));
    assert!(matches!(client.ask(&Request::Ping), Err(Error::Closed)));
}
