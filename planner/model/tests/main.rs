// SPDX-License-Identifier: Apache-2.0 OR MIT
use freeport_plan_model::*;

#[test]
fn look() {
    let p = profile::built_in("bluefield2").unwrap().unwrap();
    for row in study::rows(&p) {
        println!("ROW {:3} {:5} {:32} {:20} {:22} {:.2}", row.number, row.is_reached(), row.metric, row.published, row.ours_text(), row.distance());
    }
}
