//! Errors are values: a rejected text, an access out of bounds, and a loop without an end.

use ptxvm::{Arg, Error, ErrorKind, FaultKind, Launch, Vm};
use std::time::Duration;

const HEAD: &str = ".version 6.4\n.target sm_70\n.address_size 64\n";

fn main() -> Result<(), Error> {
    let vm = Vm::new()?;

    // The text is wrong: `load` fails, with diagnostics.
    let rejected = vm.load("wrong.ptx", &format!("{HEAD}.visible .entry k() {{ ad.u32 1; }}"));
    let error = rejected.expect_err("there is no instruction `ad`");
    println!("rejected: {}", matches!(error.kind(), ErrorKind::Rejected(..)));

    // The program is wrong: `launch` fails, with the thread and the address.
    let text = format!(
        "{HEAD}.visible .entry write(.param .u64 data) {{
            .reg .b64 %at, %offset; .reg .b32 %i;
            ld.param.u64 %at, [data];
            mov.u32 %i, %tid.x;
            mul.wide.u32 %offset, %i, 4;
            add.u64 %at, %at, %offset;
            st.global.u32 [%at], %i;
            ret;
        }}
        .visible .entry hang() {{ again: bra again; }}"
    );
    let module = vm.load("program.ptx", &text)?;
    let (kernel, data) = (module.kernel("write")?, vm.buffer(&[0u32; 5])?);
    let launch = Launch::new([1, 1, 1], [8, 1, 1]).args(&kernel, &[Arg::buffer(&data)])?;
    let error = vm.launch(&kernel, &launch).expect_err("thread 5 writes past the end of the array");
    let trap = error.trap().expect("an access out of bounds is a trap");
    println!("line {}: {}", trap.line, trap.instruction);

    // It does not end: a time limit is a trap, too.
    let launch = Launch::new([1, 1, 1], [32, 1, 1]).timeout(Duration::from_millis(50));
    let error = vm.launch(&module.kernel("hang")?, &launch).expect_err("the loop has no end");
    println!(
        "stopped: {}",
        matches!(error.kind(), ErrorKind::Trap(trap, _) if matches!(trap.kind, FaultKind::TimeLimit))
    );
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Error> {
    main()
}
