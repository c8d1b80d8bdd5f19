//! scratch
use ptx_exec::launch::*;
use ptx_exec::mem::*;
use std::sync::Arc;
fn main() {
    for spec in std::env::args().skip(1) {
        run(&spec);
    }
}
fn run(spec: &str) {
    let text = std::fs::read_to_string(spec).unwrap();
    let mut cfg = LaunchConfig::new([1; 3], [1; 3]);
    let (mut ptx, mut kernel) = (String::new(), String::new());
    let mut args: Vec<Vec<String>> = vec![];
    let mut repeat = 1;
    for line in text.lines() {
        let w: Vec<&str> = line.split_whitespace().collect();
        let three = || [w[1].parse().unwrap(), w[2].parse().unwrap(), w[3].parse().unwrap()];
        match w[0] {
            "ptx" => ptx = w[1].into(),
            "kernel" => kernel = w[1].into(),
            "grid" => cfg.grid = three(),
            "block" => cfg.block = three(),
            "shared" => cfg.dynamic_shared = w[1].parse().unwrap(),
            "threads" => cfg.threads = Some(w[1].parse().unwrap()),
            "seed" => cfg.seed = w[1].parse().unwrap(),
            "maxsteps" => cfg.max_steps = Some(w[1].parse().unwrap()),
            "repeat" => repeat = w[1].parse().unwrap(),
            "arg" => args.push(w[1..].iter().map(|s| s.to_string()).collect()),
            _ => panic!("{line}"),
        }
    }
    let src = std::fs::read_to_string(&ptx).unwrap();
    let checked = ptx::check::check(&ptx, &src, &Default::default());
    let Some(module) = checked.module else {
        println!("{spec} REJECTED {:?}", checked.diagnostics.first().map(|d| d.message.clone()));
        return;
    };
    let program = Arc::new(ptx::ir::lower(module));
    let memory = Memory::new(program.address_size).unwrap();
    let module = match LoadedModule::load(&memory, program) {
        Ok(m) => m,
        Err(e) => {
            println!("{spec} LOAD {e}");
            return;
        }
    };
    let Some((id, f)) = module.kernels().find(|(_, f)| f.name == kernel) else {
        println!("{spec} NOKERNEL");
        return;
    };
    let mut params = vec![0u8; f.param_bytes as usize];
    let slots = f.params.clone();
    let k = match Kernel::bind(&module, id) {
        Ok(k) => k,
        Err(e) => {
            println!("{spec} UNIMPLEMENTED {e}");
            return;
        }
    };
    let mut outs = vec![];
    for (i, (arg, slot)) in args.iter().zip(&slots).enumerate() {
        let ptx::ir::ParamPlace::Kernel(off) = slot.place else { panic!() };
        let bytes: Vec<u8> = match arg[0].as_str() {
            "hex" => (0..arg[1].len() / 2)
                .map(|i| u8::from_str_radix(&arg[1][2 * i..2 * i + 2], 16).unwrap())
                .collect(),
            "buf" => {
                let data = std::fs::read(&arg[1]).unwrap();
                let at = memory
                    .alloc(Class::Global, data.len() as u64, 256, &format!("buffer #{} (argument {i})", i))
                    .unwrap();
                memory.write(at, &data).unwrap();
                outs.push((at, data.len(), arg[2].clone()));
                at.to_le_bytes().to_vec()
            }
            _ => panic!(),
        };
        let n = bytes.len().min(slot.bytes as usize);
        params[off as usize..][..n].copy_from_slice(&bytes[..n]);
    }
    cfg.params = params;
    for _ in 0..repeat {
        match k.launch(&cfg) {
            Ok(r) => {
                println!(
                    "{spec} OK steps {} lanes {} us {} Mlane/s {:.0}",
                    r.steps,
                    r.thread_instructions,
                    r.elapsed.as_micros(),
                    r.thread_instructions as f64 / r.elapsed.as_secs_f64() / 1e6
                );
                std::fs::write(format!("{spec}.out"), &r.output).unwrap();
            }
            Err(LaunchError::Trap(t, r)) => {
                println!(
                    "{spec} TRAP {} line {} cta {:?} tid {:?}\n{t}",
                    t.kind.word(),
                    t.line,
                    t.ctaid,
                    t.tid
                );
                std::fs::write(format!("{spec}.out"), &r.output).unwrap();
            }
            Err(e) => println!("{spec} ERROR {e}"),
        }
    }
    for (at, n, file) in outs {
        let mut data = vec![0; n];
        memory.read(at, &mut data).unwrap();
        std::fs::write(file, data).unwrap();
    }
}
