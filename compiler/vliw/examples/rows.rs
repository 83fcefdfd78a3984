// SPDX-License-Identifier: Apache-2.0 OR MIT
use freeport_ebpf::object::Object;
use freeport_vliw::{Options, compile};
fn main() {
    let mut arguments = std::env::args().skip(1);
    let show = std::env::var("SHOW").ok();
    let (mut all, mut all_kept) = (0, 0);
    while let Some(path) = arguments.next() {
        let object = Object::parse(&std::fs::read(&path).unwrap()).unwrap();
        for program in &object.programs {
            let kept = compile(program, &object.maps, &Options::keeping_all());
            let mut options = Options::default();
            if let Ok(off) = std::env::var("OFF") {
                for name in off.split(',') {
                    *options.pass_mut(name).unwrap() = false;
                }
            }
            match (kept, compile(program, &object.maps, &options)) {
                (Ok(kept), Ok(image)) => {
                    println!(
                        "{:34} {:20} ebpf {:4}  kept {:4}/{:4} = {:.2}   all {:4}/{:4} = {:.2}  {:.0} % less",
                        path.rsplit('/').next().unwrap(),
                        program.name,
                        program.instructions.len(),
                        kept.operations(),
                        kept.rows.len(),
                        kept.operations_per_row(),
                        image.operations(),
                        image.rows.len(),
                        image.operations_per_row(),
                        100.0 - 100.0 * image.rows.len() as f64 / kept.rows.len() as f64
                    );
                    all += image.rows.len();
                    all_kept += kept.rows.len();
                    match show.as_deref() {
                        Some("kept") => println!("{kept}"),
                        Some(_) => println!("{image}"),
                        None => {}
                    }
                }
                (_, Err(error)) | (Err(error), _) => println!("{path} {error}"),
            }
        }
    }
    println!("kept {all_kept} all {all}");
}
