//! Formats compared with the output of glibc 2.36's `printf` for the same arguments.

use super::{Room, format};
use crate::mem::{Class, Memory, View};
use crate::trap::FaultKind;
use ptx::check::module::AddressSize;

/// An argument in the buffer.
#[derive(Clone, Copy)]
enum A<'a> {
    W(u32),
    L(u64),
    F(f64),
    S(&'a str),
}
use A::{F, L, S, W};

/// A limit of so many bytes, in a launch that need not stop.
fn room(bytes: usize) -> Room<'static> {
    Room { bytes, stop: &|| None }
}

/// Formats; also the number of arguments used.
fn print(text: &str, args: &[A<'_>]) -> (String, u32) {
    let memory = Memory::new(AddressSize::Bits64).expect("an address range");
    let mut buffer: Vec<u8> = Vec::new();
    let wide = |buffer: &mut Vec<u8>, bits: u64| {
        buffer.resize(buffer.len().next_multiple_of(8), 0xcc);
        buffer.extend(bits.to_le_bytes());
    };
    for arg in args {
        match *arg {
            W(bits) => buffer.extend(bits.to_le_bytes()),
            L(bits) => wide(&mut buffer, bits),
            F(value) => wide(&mut buffer, value.to_bits()),
            S(text) => {
                let at = memory.alloc(Class::Const, text.len() as u64 + 1, 1, "string").expect("memory");
                memory.write(at, text.as_bytes()).expect("in bounds");
                wide(&mut buffer, at);
            }
        }
    }
    let at = memory.alloc(Class::Global, buffer.len() as u64, 8, "arguments").expect("memory");
    memory.write(at, &buffer).expect("in bounds");
    let written = format(&mut View::new(&memory), 3, text.as_bytes(), (at, 8), &room(1 << 20))
        .expect("arguments in bounds");
    (String::from_utf8(written.text).expect("text"), written.arguments)
}

#[test]
fn integers() {
    let w = |v: i32| W(v as u32);
    assert_eq!(
        print(
            "%d|%5d|%-5d|%05d|%+d|% d|%.3d|%8.3d|%-+6d|%i",
            &[w(-7), w(42), w(42), w(-42), w(42), w(42), w(7), w(-7), w(5), w(0)]
        ),
        ("-7|   42|42   |-0042|+42| 42|007|    -007|+5    |0".to_owned(), 10)
    );
    assert_eq!(
        print(
            "%u|%x|%X|%o|%#x|%#o|%#X|%08x|%.0d|%#x",
            &[W(4_000_000_000), W(0xbeef), W(0xbeef), W(8), W(255), W(8), W(255), W(0xabc), W(0), W(0)]
        )
        .0,
        "4000000000|beef|BEEF|10|0xff|010|0XFF|00000abc||0"
    );
    assert_eq!(
        print(
            "%hhd|%hd|%hhu|%hx|%lld|%llu|%ld|%zu|%llx",
            &[
                W(300),
                W(70000),
                W(300),
                W(70000),
                L(-5_000_000_000i64 as u64),
                L(u64::MAX),
                L(u64::MAX),
                L(7),
                L(0x0123_4567_89ab_cdef)
            ]
        )
        .0,
        "44|4464|44|1170|-5000000000|18446744073709551615|-1|7|123456789abcdef"
    );
}

#[test]
fn characters_strings_and_pointers() {
    assert_eq!(
        print(
            "%c|%3c|%-3c|%s|%8s|%-8s|%.2s|%p|%%",
            &[W(65), W(66), W(67), S("str"), S("str"), S("str"), S("str"), L(0x1234)]
        ),
        ("A|  B|C  |str|     str|str     |st|0x1234|%".to_owned(), 8)
    );
    assert_eq!(print("%s", &[L(0)]).0, "(null)");
}

#[test]
fn floats() {
    assert_eq!(
        print(
            "%f|%.2f|%10.3f|%-10.1f|%010.2f|%+.0f|%#.0f|% f",
            &[F(5.34159265), F(2.675), F(-1.5), F(2.25), F(-5.34159), F(2.5), F(3.0), F(1.0)]
        )
        .0,
        "5.341593|2.67|    -1.500|2.2       |-000005.34|+2|3.| 1.000000"
    );
    assert_eq!(
        print(
            "%e|%.3E|%12.2e|%.0e|%#.0e|%e",
            &[F(12345.678), F(0.00012345), F(-9.995), F(5.5), F(5.0), F(0.0)]
        )
        .0,
        "1.234568e+04|1.234E-04|   -9.99e+00|6e+00|5.e+00|0.000000e+00"
    );
    assert_eq!(
        print(
            "%g|%g|%g|%g|%.3g|%#g|%G|%g|%g",
            &[
                F(0.0001),
                F(0.00001),
                F(123456.0),
                F(1234567.0),
                F(2.5),
                F(1.5),
                F(1e-10),
                F(0.0),
                F(100000.0)
            ]
        )
        .0,
        "0.0001|1e-05|123456|1.23457e+06|2.5|1.50000|1E-10|0|100000"
    );
    assert_eq!(
        print(
            "%a|%a|%.3a|%A|%.0a|%a|%20a|%.15a",
            &[F(1.0), F(0.1), F(1.999755859375), F(255.5), F(1.5), F(5e-324), F(-2.0), F(1.0)]
        )
        .0,
        "0x1p+0|0x1.999999999999ap-4|0x1.fffp+0|0X1.FFP+7|0x2p+0|0x0.0000000000001p-1022|             -0x1p+1\
         |0x1.000000000000000p+0"
    );
    let inf = f64::INFINITY;
    assert_eq!(
        print("%f|%5.1f|%F|%g|%-6f|%06f", &[F(inf), F(-inf), F(inf), F(-0.0), F(inf), F(-inf)]).0,
        "inf| -inf|INF|-0|inf   |  -inf"
    );
}

#[test]
fn widths_from_arguments() {
    let w = |v: i32| W(v as u32);
    assert_eq!(
        print("%*d|%-*d|%.*f|%*d", &[w(5), w(42), w(5), w(42), w(2), F(5.34159), w(-4), w(7)]).0,
        "   42|42   |5.34|7   "
    );
}

#[test]
fn what_is_no_conversion_stays() {
    assert_eq!(print("100%! sure %", &[]), ("100%! sure %".to_owned(), 0));
    assert_eq!(print("%y%", &[]).0, "%y%");
    assert_eq!(print("%99999d", &[W(1)]).0.len(), 4096);
}

#[test]
fn missing_arguments_are_a_fault() {
    let memory = Memory::new(AddressSize::Bits64).expect("an address range");
    let at = memory.alloc(Class::Global, 4, 4, "arguments").expect("memory");
    let mut view = View::new(&memory);
    assert!(format(&mut view, 0, b"%d", (at, 8), &room(99)).is_ok());
    assert_eq!(format(&mut view, 9, b"%d %d", (at, 8), &room(99)).err().map(|fault| fault.lane), Some(9));
}

/// `tests/printf/printf.tsv`: random formats with the output of the C library.
#[test]
fn random_formats_as_the_c_library() {
    let table = include_str!("../../../../tests/printf/printf.tsv");
    let (mut count, mut wrong) = (0, Vec::new());
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [text, args, expected] = columns[..] else { panic!("three columns: {line}") };
        let bits = |hex: &str| u64::from_str_radix(hex, 16).unwrap_or_else(|e| panic!("{e}: {line}"));
        let args: Vec<A<'_>> = args
            .split(';')
            .map(|arg| match arg.split_at(1) {
                ("w", hex) => W(bits(hex) as u32),
                ("l", hex) => L(bits(hex)),
                ("f", hex) => F(f64::from_bits(bits(hex))),
                (_, text) => S(text),
            })
            .collect();
        let found = print(text, &args);
        if found != (expected.to_owned(), args.len() as u32) {
            wrong.push(format!("{line}\n  gives {found:?}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 1500);
}

#[test]
fn the_text_is_as_long_as_there_is_room_and_what_is_missing_is_counted() {
    let memory = Memory::new(AddressSize::Bits64).expect("an address range");
    let at = memory.alloc(Class::Global, 4, 4, "one argument").expect("memory");
    memory.write(at, &77u32.to_le_bytes()).expect("in bounds");
    let written = |bytes| {
        let written =
            format(&mut View::new(&memory), 0, b"<%5d>%%", (at, 8), &room(bytes)).expect("in bounds");
        (String::from_utf8(written.text).expect("text"), written.dropped, written.arguments)
    };
    assert_eq!(written(8), ("<   77>%".to_owned(), 0, 1));
    assert_eq!(written(4), ("<   ".to_owned(), 4, 1));
    assert_eq!(written(0), (String::new(), 8, 1));
}

#[test]
fn a_call_takes_32_arguments() {
    let args: Vec<A<'_>> = (0..40).map(W).collect();
    let (text, used) = print(&"%d ".repeat(34), &args);
    let numbers: String = (0..32).map(|n| format!("{n} ")).collect();
    assert_eq!((text, used), (numbers + "%d %d ", 32));
}

#[test]
fn a_long_text_asks_whether_the_launch_is_to_stop() {
    let memory = Memory::new(AddressSize::Bits64).expect("an address range");
    let stops = Room { bytes: 1 << 20, stop: &|| Some(FaultKind::Cancelled) };
    let long = |bytes| format(&mut View::new(&memory), 3, &vec![b'x'; bytes], (0, 8), &stops);
    assert_eq!(long(1000).map(|written| written.text.len()).ok(), Some(1000));
    let fault = long(100_000).err().expect("it is to stop");
    assert_eq!((fault.kind, fault.lane), (FaultKind::Cancelled, 3));
}
