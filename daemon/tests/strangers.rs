//! Users who are not one's own.
use crate::common::{Host, until};
use hectare_testing::skip;
use hectare_wire::{Connection, Request, Socket};
use std::process::Stdio;

/// A daemon of another user is neither trusted nor does it answer. Needs root, to start one.
#[test]
fn other_users_are_refused() {
    use std::os::unix::process::CommandExt;
    if rustix::process::geteuid().as_raw() != 0 {
        return skip("root", "only root can be two users");
    }
    let host = Host::new();
    host.dir.make().unwrap();
    let nobody = 65534;
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(host.top.path(), open).unwrap();
    std::os::unix::fs::chown(host.dir.path(), Some(nobody), Some(nobody)).unwrap();
    // A copy that the other user may run, wherever the build directory is.
    let program = host.top.path().join("hectared");
    std::fs::copy(env!("CARGO_BIN_EXE_hectared"), &program).unwrap();
    let mut command = host.command(program.to_str().unwrap());
    let mut daemon = command.uid(nobody).gid(nobody).stderr(Stdio::null()).spawn().unwrap();
    until("the other user's daemon", || host.dir.socket().exists());
    assert!(matches!(Connection::open(&host.dir), Err(hectare_wire::Error::RunDir { .. })));
    // Root gets past the directory; the daemon looks at who comes.
    let mut socket = None;
    until("its socket", || {
        socket = Socket::connect(&host.dir.socket()).unwrap();
        socket.is_some()
    });
    let socket = socket.unwrap();
    let _ = socket.send(&hectare_wire::encode(&Request::Ping).unwrap(), None);
    assert!(matches!(socket.receive().unwrap(), hectare_wire::Received::Closed));
    // The same directory given to root: the socket's owner is looked at, too.
    std::os::unix::fs::chown(host.dir.path(), Some(0), Some(0)).unwrap();
    let error = Connection::open(&host.dir).unwrap_err();
    assert!(matches!(error, hectare_wire::Error::OtherUser { theirs: 65534, ours: 0, .. }), "{error}");
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}
