use super::*;
use proptest::prelude::*;

fn header(descr: &str, fortran_order: bool, shape: &[usize]) -> Header {
    Header { descr: descr.into(), fortran_order, shape: shape.into() }
}

fn parse(bytes: &[u8]) -> Result<Header, NpyError> {
    let range = text_range(&bytes[..bytes.len().min(PREAMBLE)])?;
    Header::parse(bytes.get(range).ok_or(NpyError::CutOff)?)
}

#[test]
fn headers_of_numpy_are_read() {
    for (text, expected) in [
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n", header("<f4", false, &[3, 4])),
        ("{\"shape\":(7,),\"descr\":\"|u1\",\"fortran_order\":True}", header("|u1", true, &[7])),
        ("{'descr': '<i8', 'fortran_order': False, 'shape': (), }", header("<i8", false, &[])),
        ("{'descr': '<i8', 'fortran_order': False, 'shape': (3L, 0L,), }", header("<i8", false, &[3, 0])),
    ] {
        assert_eq!(Header::parse(text.as_bytes()), Ok(expected), "{text}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let with = |shape: &str| format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
    for (text, what) in [
        (String::new(), "byte 0 of its header: expected '{', found its end"),
        ("{'descr': '<f4'}".into(), "no key \"fortran_order\""),
        ("{'descr': '<f4', 'descr': '<f4'}".into(), "the key \"descr\" twice"),
        ("{'order': 1}".into(), "an unknown key \"order\""),
        ("{'descr': [('x', '<f4')]}".into(), "records of several fields"),
        ("{'descr': '<f4".into(), "byte 10 of its header: a string without an end"),
        ("{'de\\x73cr': '<f4'}".into(), "a string with a backslash"),
        ("{'fortran_order': 0}".into(), "expected True or False, found '0'"),
        (with("(3)"), "a number, not a tuple"),
        (with("(3, -4)"), "expected an extent, found '-'"),
        (with("(3, 4"), "expected ')', found '}'"),
        (with("(99999999999999999999, )"), "the extent 99999999999999999999 is too large"),
        (with(&format!("({})", "1,".repeat(65))), "more than 64 dimensions"),
        (with("(3, 4)") + "x", "expected the end, found 'x'"),
    ] {
        let error = Header::parse(text.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(what), "{text}: {error}");
    }
}

#[test]
fn the_beginning_is_checked() {
    for (bytes, what) in [
        (b"PK\x03\x04".as_slice(), "not an .npy file"),
        (b"", "not an .npy file"),
        (b"\x93NUMPY", "cut off"),
        (b"\x93NUMPY\x01\x00\x10", "cut off"),
        (b"\x93NUMPY\x02\x00\x10\x00", "cut off"),
        (b"\x93NUMPY\x04\x00\x10\x00\x00\x00", "format version 4.0"),
        (b"\x93NUMPY\x01\x01\x10\x00\x00\x00", "format version 1.1"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "a header of 4294967295 bytes"),
    ] {
        let error = text_range(bytes).unwrap_err();
        assert!(error.to_string().contains(what), "{bytes:?}: {error}");
    }
    assert_eq!(text_range(b"\x93NUMPY\x01\x00\x76\x00{'"), Ok(10..128));
    assert_eq!(text_range(b"\x93NUMPY\x03\x00\x74\x00\x00\x00"), Ok(12..128));
}

#[test]
fn long_headers_take_version_2() {
    let long = header(&"x".repeat(70_000), false, &[3]);
    let bytes = long.to_bytes();
    assert_eq!((bytes[6], bytes.len() % ALIGNMENT), (2, 0));
    assert_eq!(parse(&bytes), Ok(long));
}

proptest! {
    #[test]
    fn headers_are_read_as_written(shape in prop::collection::vec(any::<usize>(), 0..64), fortran: bool) {
        let written = header("<f8", fortran, &shape);
        let bytes = written.to_bytes();
        prop_assert_eq!(bytes.len() % ALIGNMENT, 0);
        prop_assert_eq!(bytes.last(), Some(&b'\n'));
        prop_assert_eq!(parse(&bytes), Ok(written));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
        let _ = Header::parse(&bytes);
    }

    #[test]
    fn no_text_of_the_right_kind_makes_it_panic(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "{", "}", "(", ")", ",", ":", " ", "'", "\"", "\\", "'descr'", "'shape'", "'fortran_order'", "True",
                "False", "'<f4'", "3", "18446744073709551616", "L", "é", "[", "-",
            ]),
            0..24,
        ),
    ) {
        let _ = Header::parse(pieces.concat().as_bytes());
    }

    #[test]
    fn damaged_headers_do_not_make_it_panic(at: prop::sample::Index, byte: u8, end: prop::sample::Index) {
        let mut bytes = header("<f4", false, &[6, 7]).to_bytes();
        let len = bytes.len();
        bytes[at.index(len)] = byte;
        let _ = parse(&bytes);
        let _ = parse(&bytes[..end.index(len)]);
    }
}
