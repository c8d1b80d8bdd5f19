//! Two streams: one doubles an array, the other waits for it and increases every element. The host waits for
//! the second one.

use ptxvm::{Arg, Error, Launch, Vm};

/// A kernel that does one instruction to each element.
fn kernel(name: &str, instruction: &str) -> String {
    format!(
        ".visible .entry {name}(.param .u64 data, .param .u32 n)
        {{
            .reg .pred %p;
            .reg .b32 %i, %cta, %size, %x;
            .reg .b64 %at, %offset;
            ld.param.u32 %x, [n];
            mov.u32 %cta, %ctaid.x;
            mov.u32 %size, %ntid.x;
            mov.u32 %i, %tid.x;
            mad.lo.u32 %i, %cta, %size, %i;
            setp.ge.u32 %p, %i, %x;
            @%p ret;
            ld.param.u64 %at, [data];
            mul.wide.u32 %offset, %i, 4;
            add.u64 %at, %at, %offset;
            ld.global.u32 %x, [%at];
            {instruction}
            st.global.u32 [%at], %x;
            ret;
        }}\n"
    )
}

fn main() -> Result<(), Error> {
    let vm = Vm::new()?;
    let text = ".version 6.4\n.target sm_70\n.address_size 64\n".to_owned()
        + &kernel("double", "add.u32 %x, %x, %x;")
        + &kernel("increase", "add.u32 %x, %x, 1;");
    let module = vm.load("two.ptx", &text)?;
    let host: Vec<u32> = (0..1000).collect();
    let data = vm.buffer(&host)?;
    let launch = |name: &str| -> Result<_, Error> {
        let kernel = module.kernel(name)?;
        let launch =
            Launch::new([4, 1, 1], [256, 1, 1]).args(&kernel, &[Arg::buffer(&data), 1000u32.into()])?;
        Ok((kernel, launch))
    };

    let (first, second) = (vm.stream(), vm.stream());
    let (kernel, doubles) = launch("double")?;
    let doubled = first.launch(&kernel, doubles);
    second.wait(doubled.mark());
    let (kernel, increases) = launch("increase")?;
    second.launch(&kernel, increases).wait()?;
    doubled.wait()?;

    assert_eq!(data.read()?, host.iter().map(|x| 2 * x + 1).collect::<Vec<_>>());
    println!("1000 elements were doubled, then increased");
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Error> {
    main()
}
