//! The fuzzer's use of frames, as plain functions of bytes: they panic where the codec breaks a promise. Shared by the
//! tests and by `fuzz/`.
#![allow(dead_code, unreachable_pub, missing_docs)]
use hectare_net::wire::{
    Announced, Cut, Forced, Frame, Handover, Hello, Left, Owner, Register, Stage, Stated, Subscription,
    Wanted, decode, encode,
};
use hectare_net::{
    AreaId, Cause, Description, ElementType, GroupId, HelloError, HostId, NameError, PeerFailed, Place, Run,
    Version,
};

/// Raw bytes as a packet: reading ends, and what has a meaning is written again as the same bytes.
pub fn raw(bytes: &[u8]) {
    if let Ok(frames) = decode(bytes) {
        assert_eq!(packet(&frames), bytes, "{frames:?} has two forms");
    }
}

/// Bytes as choices of frames: they are read as they were written. The packet.
pub fn written(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let lines = data(choices);
        let frame = match &lines {
            Some(bytes) => decode(bytes).expect("a data frame").remove(0),
            None => choices.frame(),
        };
        encode(&frame, &mut bytes);
        if choices.0.is_empty() {
            break;
        }
    }
    let frames = decode(&bytes).expect("what was written has a meaning");
    assert_eq!(packet(&frames), bytes);
    bytes
}

/// So many times noise, packets that are written, and such packets with bits changed. Equal seeds make equal inputs.
pub fn random(count: u64, seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..count {
        let len = random() % 200;
        let noise: Vec<u8> = (0..len).map(|_| random() as u8 & if len % 2 == 0 { 255 } else { 7 }).collect();
        raw(&noise);
        let mut packet = written(&mut Choices(&noise));
        for _ in 0..=random() % 3 {
            let at = random() as usize % packet.len();
            packet[at] ^= 1 << (random() % 8);
        }
        raw(&packet);
    }
}

/// Sometimes a data frame: byte by byte, as `NET.md` has it.
fn data(choices: &mut Choices<'_>) -> Option<Vec<u8>> {
    if choices.below(4) > 0 {
        return None;
    }
    let mut bytes = vec![6];
    bytes.extend(choices.u64().to_le_bytes());
    bytes.extend(u16::from(choices.below(5)).to_le_bytes());
    bytes.extend((choices.u64() >> 8).to_le_bytes());
    let (runs, len) = (u16::from(choices.below(4)), u16::from(choices.below(255)));
    bytes.extend(runs.to_le_bytes());
    bytes.extend(len.to_le_bytes());
    for _ in 0..runs {
        bytes.extend(u32::from(choices.below(255)).to_le_bytes());
        bytes.extend(u16::from(choices.below(100) + 1).to_le_bytes());
    }
    bytes.extend((0..len).map(|at| at as u8));
    Some(bytes)
}

fn packet(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frames.iter().for_each(|frame| encode(frame, &mut bytes));
    bytes
}

/// Bytes as choices; zeros when there are no more.
pub struct Choices<'b>(pub &'b [u8]);

impl Choices<'_> {
    pub fn below(&mut self, end: u8) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first % end
    }

    fn u64(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(255).into(),
            1 => u64::MAX - u64::from(self.below(255)),
            _ => (0..8).fold(0, |number, _| number << 8 | u64::from(self.below(255))),
        }
    }

    fn u32(&mut self) -> u32 {
        self.u64() as u32
    }

    fn host(&mut self) -> HostId {
        HostId(self.u64() as u16)
    }

    fn group(&mut self) -> GroupId {
        GroupId(self.u64())
    }

    fn area(&mut self) -> AreaId {
        AreaId { group: self.group(), member: self.below(40).into() }
    }

    fn version(&mut self) -> Version {
        Version { term: self.u64(), counter: self.u64() }
    }

    fn element(&mut self) -> ElementType {
        ElementType { kind: self.u32(), size: self.u32(), align: self.u32() }
    }

    fn description(&mut self) -> Description {
        let (len, group) = (self.below(255).into(), self.below(255).into());
        Description {
            name: "n".repeat(len),
            group: "g".repeat(group),
            element: self.element(),
            bytes: self.u64() >> 26,
            row: self.u32(),
            on_demand: self.below(2) == 1,
        }
    }

    fn wanted(&mut self) -> Wanted {
        let Description { name, element, bytes, .. } = self.description();
        let asked = self.u32();
        Wanted { name, element: self.option(|_| element), bytes: self.option(|_| bytes), asked }
    }

    fn name_error(&mut self) -> NameError {
        match self.below(11) {
            0 => NameError::Taken { by: self.host() },
            1 => NameError::Type { there: self.element(), here: self.element(), asked_by: self.host() },
            2 => NameError::Length { there: self.u64(), here: self.u64(), asked_by: self.host() },
            3 => NameError::Memory,
            4 => NameError::Members { by: self.host() },
            5 => NameError::Long { by: self.host() },
            6 => NameError::Unknown,
            7 => NameError::Group { by: self.host() },
            8 => NameError::Local { by: self.host() },
            9 => NameError::Unsent { by: self.host() },
            _ => NameError::Deleted,
        }
    }

    fn hello_error(&mut self) -> HelloError {
        match self.below(4) {
            0 => HelloError::Version { theirs: self.u32() as u16, ours: self.u32() as u16 },
            1 => HelloError::Job,
            2 => HelloError::Host { says: self.host() },
            _ => HelloError::Segment,
        }
    }

    fn cause(&mut self) -> Cause {
        match self.below(3) {
            0 => Cause::Silent,
            1 => Cause::Unreachable { from: self.host() },
            _ => Cause::Refused { from: self.host(), why: self.hello_error() },
        }
    }

    fn option<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(2) == 0).then(|| value(self))
    }

    fn subscription(&mut self) -> Subscription {
        let members = self.below(33);
        Subscription {
            number: self.u32(),
            stage: [Stage::Off, Stage::Free, Stage::Complete, Stage::Busy][usize::from(self.below(4))],
            cut: self.u64(),
            state: self.u64(),
            round: self.u64(),
            epoch: self.u64(),
            interval_us: self.u64(),
            forced: self.u32(),
            have: (0..members).map(|_| self.option(Choices::version)).collect(),
        }
    }

    fn result<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Result<T, NameError> {
        if self.below(2) == 0 { Ok(value(self)) } else { Err(self.name_error()) }
    }

    fn register(&mut self) -> Register {
        match self.below(23) {
            0 => {
                let covers = self.below(255);
                Register::Clock {
                    clock: self.u64(),
                    lowest: self.u64(),
                    subscriptions: self.u32(),
                    named: self.u32(),
                    covers: (0..covers).map(|_| (self.group(), self.u64())).collect(),
                    ahead: self.option(|all| {
                        let covers = all.below(255);
                        (0..covers).map(|_| (all.group(), all.u64())).collect()
                    }),
                }
            }
            1 => Register::Subscription(self.group(), self.subscription()),
            2 => Register::Member(self.area(), self.option(Choices::description)),
            3 => Register::Name(
                self.area(),
                self.option(|all| Stated {
                    description: all.description(),
                    accepted: all.below(2) == 0,
                    kept: all.option(Choices::name_error),
                }),
            ),
            4 => Register::Restated(self.u32()),
            5 => Register::Named(self.area(), self.result(|_| ())),
            6 => Register::Lookup(self.u32(), self.option(Choices::wanted)),
            7 => Register::Found(self.u32(), self.u64(), self.result(Choices::area)),
            8 => Register::Conflict(self.area(), self.host(), self.name_error()),
            9 => Register::Suspect(self.host(), self.below(2) == 0),
            10 => Register::Verdict(PeerFailed { host: self.host(), cause: self.cause() }),
            11 => Register::Forced(
                self.group(),
                Forced {
                    forced: self.u32(),
                    round: self.u64(),
                    is_newest: self.below(2) == 0,
                    postponed: self.below(2) == 0,
                    is_not_taken: self.below(2) == 0,
                },
            ),
            12 => Register::Unsent(self.group(), self.u64(), self.u64()),
            13 => Register::Moving(self.group(), Owner { host: self.host(), epoch: self.u64() }),
            14 => Register::Handover(
                self.group(),
                self.option(|all| {
                    let handover = Handover { epoch: all.u64(), rank: all.u32() };
                    let members = all.below(32);
                    Left { handover, versions: (0..members).map(|_| all.version()).collect() }
                }),
            ),
            15 => Register::Taken(self.group(), self.u64()),
            16 => Register::Card((0..self.below(60)).collect()),
            17 => {
                let members = self.below(32);
                let place = |all: &mut Choices<'_>| Place { address: all.u64(), key: all.u32() };
                let places = self.option(|all| (0..members).map(|_| place(all)).collect());
                Register::Grant(self.group(), self.u64(), places)
            }
            18 => Register::Ownerless(self.area(), self.below(2) == 0),
            19 => Register::Workers { first: self.u32(), failed: self.u64(), left: self.u64() },
            20 => Register::Deleted(self.area(), self.below(2) == 0),
            21 => Register::Deserted,
            _ => Register::Left,
        }
    }

    fn frame(&mut self) -> Frame<'static> {
        match self.below(7) {
            0 => Frame::Hello(Hello {
                job: u128::from(self.u64()) << 64 | 5,
                segment: self.u64(),
                boot: self.u64(),
                host: self.host(),
            }),
            1 => Frame::Alive,
            2 => Frame::Refused(self.hello_error()),
            4 => {
                let runs = self.below(40);
                Frame::Announced(Announced {
                    cut: self.u64(),
                    member: self.below(32) as u16,
                    position: self.u64() >> 1,
                    runs: (0..runs)
                        .map(|_| Run { first: self.u32() >> 1, count: (self.u32() >> 1).max(1) })
                        .collect(),
                })
            }
            3 => Frame::Register { serial: self.u64(), register: self.register() },
            5 => Frame::Settled(self.u64()),
            _ => {
                let members = self.below(32) + 1;
                Frame::Cut(Cut {
                    cut: self.u64(),
                    group: self.group(),
                    base: self.u64(),
                    round: self.u64(),
                    label: self.u64(),
                    age_ns: self.u64(),
                    total: self.u64() >> 32,
                    placed: self.below(2) == 0,
                    versions: (0..members).map(|_| self.version()).collect(),
                })
            }
        }
    }
}
