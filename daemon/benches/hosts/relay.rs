//! The least that any program pays whose workers do not send themselves: a word there and back, by shared memory to a program that
//! forwards it by UDP to another, and by shared memory again: four processes that give way to each other, and nothing else.
use crate::common::cluster::Cluster;
use crate::figure;
use crate::local::{hold, start};
use crate::support::{LONG, mean_us, say, worker};
use hectare_dsm::{AreaSpec, Cells, Result};
use hectare_wire::{Connection, JobSettings, Request};
use std::net::{SocketAddr, UdpSocket};
use std::thread::yield_now;
use std::time::{Duration, Instant};

const WARM: u64 = 200;
const TURNS: u64 = 20_000;
const JOB: &str = "relay";
/// The words of an area on their lines: to the forwarder, and from it.
const OUT: usize = 0;
const IN: usize = 16;

/// The time there and back, in microseconds.
pub(crate) fn measure(cluster: &Cluster) -> f64 {
    let held: Vec<_> = (0..2)
        .map(|host| {
            let request = Request::Create { job: JOB.into(), settings: JobSettings::default(), keep: false };
            Connection::open(&cluster.dir(host)).expect("a daemon").order(&request).expect("a job");
            hold(cluster, host, JOB)
        })
        .collect();
    let address = |host: usize| format!("{}:7718", cluster.network.address(host));
    let others: Vec<_> = [(1, 1, "forward"), (1, 0, "answer"), (0, 1, "forward")]
        .map(|(host, rank, part)| {
            start(cluster, host, JOB, (rank, 2), &["relay", part, &address(host), &address(1 - host)])
        })
        .into();
    let asks = start(cluster, 0, JOB, (0, 2), &["relay", "ask", &address(0), &address(1)]);
    let said = asks.wait_with_output().expect("its end");
    for mut other in others {
        other.kill().expect("it forwards until it is ended");
        other.wait().expect("its end");
    }
    drop(held);
    for host in 0..2 {
        crate::common::until("the job to go", || cluster.jobs(host).is_empty());
    }
    figure(&String::from_utf8_lossy(&said.stdout))
}

/// Plays a part of it, at an address, the forwarder with one at another.
pub(crate) fn play(part: &str, own: &str, other: &str) -> Result<()> {
    let (mut worker, _) = worker()?;
    if part == "forward" {
        let area = worker.attach_within::<u64>("words", LONG)?;
        while area.cells(&worker).is_err() {
            yield_now();
        }
        return forward(area.cells(&worker)?, own, other.parse().expect("an address"));
    }
    let words = worker.create::<u64>(AreaSpec::new("words").copies(0), 32)?;
    let area = words.area();
    let _opened = words.open(&worker).map_err(|refused| refused.error)?;
    turns(area.cells(&worker)?, part == "ask");
    Ok(())
}

fn turns(words: Cells<'_, u64>, asks: bool) {
    let mut times = Vec::new();
    for turn in 1.. {
        let since = Instant::now();
        if asks {
            words.publish(OUT, turn);
        }
        while words.observe(IN) < turn {
            yield_now();
        }
        if !asks {
            words.publish(OUT, turn);
            continue;
        }
        if turn > WARM {
            times.push(since.elapsed());
        }
        if turn == WARM + TURNS {
            return say(mean_us(&times), times);
        }
    }
}

fn forward(words: Cells<'_, u64>, own: &str, other: SocketAddr) -> Result<()> {
    let socket = UdpSocket::bind(own).expect("a socket");
    socket.set_nonblocking(true).expect("a socket that does not wait");
    let (mut sent, mut bytes, mut again) = (0, [0; 64], Instant::now());
    loop {
        let out = words.observe(OUT);
        // The first ones may be lost, as the other one is not there yet.
        if out > sent || (out > 0 && again.elapsed() > Duration::from_millis(20)) {
            bytes[..8].copy_from_slice(&out.to_le_bytes());
            let _ = socket.send_to(&bytes, other);
            (sent, again) = (out, Instant::now());
        }
        match socket.recv(&mut bytes) {
            Ok(_) => {
                let word = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
                words.publish(IN, word);
            }
            Err(_) => yield_now(),
        }
    }
}
