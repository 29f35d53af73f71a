//! Messages survive the way through bytes, and no bytes do harm.
use hectare_wire::{
    FrameError, JobSettings, MAX_MESSAGE, Received, Refusal, Reply, Request, RunDir, Socket, Stall, decode,
    encode,
};
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt;

fn requests() -> Vec<Request> {
    let settings =
        JobSettings { bytes: Some(1 << 40), stall: Some(Stall::KillAfterMs(5)), ..Default::default() };
    let job = || "a-job".to_owned();
    vec![
        Request::Ping,
        Request::Create { job: job(), settings, keep: true },
        Request::Attach { job: job(), rank: Some(3) },
        Request::Rank,
        Request::Open { job: job() },
        Request::Jobs { after: String::new() },
        Request::Clients { after: u64::MAX },
        Request::Remove { job: job(), force: true },
        Request::Leave,
        Request::Hold { job: job() },
        Request::Wait { job: job() },
    ]
}

#[test]
fn requests_come_back_and_cut_ones_do_not() {
    for request in requests() {
        let bytes = encode(&request).unwrap();
        assert_eq!(decode::<Request>(&bytes).unwrap(), request);
        for len in 0..bytes.len() {
            assert!(decode::<Request>(&bytes[..len]).is_err(), "{request:?} cut to {len} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(matches!(decode::<Request>(&longer), Err(FrameError::Body { .. })));
    }
}

#[test]
fn another_version_is_named() {
    let mut bytes = encode(&Request::Ping).unwrap();
    bytes[2] = 9;
    assert_eq!(decode::<Request>(&bytes), Err(FrameError::Version { theirs: 9 }));
}

#[test]
fn a_message_that_is_too_long_is_not_made() {
    let reply = Reply::Refused(Refusal::Malformed { what: "x".repeat(MAX_MESSAGE) });
    assert!(matches!(encode(&reply), Err(FrameError::TooLong { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..Default::default() })]

    /// A message that decodes also encodes, to something that decodes to the same.
    #[test]
    fn random_bodies_are_refused_or_are_messages(body in prop::collection::vec(any::<u8>(), 0..80)) {
        let bytes = [&b"Hc\x01\x00"[..], &body].concat();
        if let Ok(request) = decode::<Request>(&bytes) {
            prop_assert_eq!(decode::<Request>(&encode(&request).unwrap()).unwrap(), request);
        }
        let _ = decode::<Reply>(&bytes);
        let _ = decode::<Request>(&body);
    }
}

#[test]
fn a_socket_keeps_messages_apart_and_passes_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    assert!(Socket::connect(&path).unwrap().is_none());
    let listener = Socket::listen(&path).unwrap();
    assert!(listener.accept().unwrap().is_none());
    let client = Socket::connect(&path).unwrap().unwrap();
    let server = listener.accept().unwrap().unwrap();
    assert_eq!(server.peer_process().unwrap(), std::process::id());
    assert!(matches!(server.receive().unwrap(), Received::Nothing));

    let file = tempfile::tempfile().unwrap();
    client.send(b"one", None).unwrap();
    client.send(b"two", Some(std::os::fd::AsFd::as_fd(&file))).unwrap();
    client.send(&vec![7; MAX_MESSAGE + 1], None).unwrap();
    assert!(matches!(server.receive().unwrap(), Received::Message(m, None) if m == b"one"));
    let Received::Message(two, Some(descriptor)) = server.receive().unwrap() else { panic!("no descriptor") };
    assert_eq!(two, b"two");
    let ends = [rustix::fs::fstat(&file), rustix::fs::fstat(&descriptor)].map(|stat| stat.unwrap().st_ino);
    assert_eq!(ends[0], ends[1]);
    assert!(matches!(server.receive().unwrap(), Received::TooLong));
    drop(client);
    assert!(matches!(server.receive().unwrap(), Received::Closed));
    assert!(matches!(server.send(b"x", None), Err(hectare_wire::Error::Closed)));
}

#[test]
fn a_run_directory_is_private_and_has_one_daemon() {
    let top = tempfile::tempdir().unwrap();
    let dir = RunDir::at(top.path().join("run"));
    assert!(matches!(dir.check(), Err(hectare_wire::Error::NoDaemon { .. })));
    dir.make().unwrap();
    let first = dir.lock().unwrap().expect("the lock is free");
    assert!(dir.lock().unwrap().is_none());
    drop(first);
    assert!(dir.lock().unwrap().is_some());
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = dir.make().unwrap_err().to_string();
    assert!(error.contains("0755") && error.contains("0700"), "{error}");
    let link = RunDir::at(top.path().join("link"));
    std::os::unix::fs::symlink(dir.path(), link.path()).unwrap();
    assert!(link.make().unwrap_err().to_string().contains("not a directory"));
}
