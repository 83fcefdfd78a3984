// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keyed tables: every method and kind, and pointers to values, run in the interpreter before and
//! after the passes.

use super::{errors, lowered, value, with_instance};
use freeport_ir::interp::{Interpreter, Options};
use freeport_ir::{Bits, InstanceId};

const TYPES: &str = "
    struct Key { uint source; uint target; ushort port; uchar protocol; };
    struct Value { ulong count; uint13 odd; uchar flags : 3; uchar more : 5; ushort marks[4]; };
";

/// Returns the result of a method with this result type and body, in an element with tables.
fn with_tables(result: &str, body: &str) -> u64 {
    let state = "
        table<Key, Value> flows[4];
        lru table<uint, ulong> recent[2];
        lpm table<uint, ushort> routes[16];
        array table<uchar, uint> slots[8];
        uint seen[4];
    ";
    let text = format!(
        "{TYPES} .element Test (->) {{
            .state {{ {state} }}
            .handler {{}}
            inline void bump(Value *v, uint by) {{ if (v) v->count += by; }}
            void add(Key k) {{ Value v = {{ 100 }}; flows.update(k, v); }}
            .method {result} call() {{ Key k = {{ 1, 2, 3, 4 }}; Value v = {{ 5 }}; {body} }}
        }}"
    );
    super::call(&text, &[]).to_u64()
}

#[test]
fn values_are_found_changed_and_removed() {
    for (body, wanted) in [
        ("Value *p = flows.lookup(k); return p ? 1 : 2;", 2),
        ("flows.update(k, v); Value *p = flows.lookup(k); return !p ? 1 : p->count;", 5),
        ("flows.update(k, v); flows.lookup(k)->count++; return flows.lookup(k)->count;", 6),
        ("flows.update(k, v); Value *p = flows.lookup(k); p->count += 3; return p->count;", 8),
        ("bool a = flows.delete(k); flows.update(k, v); return a * 2 + flows.delete(k);", 1),
        ("flows.update(k, v); Value *p = flows.lookup(k); bump(p, 4); return (*p).count;", 9),
        ("bump(flows.lookup(k), 4); return 7;", 7),
        (
            "add(k); Value *p = flows.lookup(k); Value w = *p; w.count++; *p = w; return p->count;",
            101,
        ),
        ("flows.update(k, v); k.port = 9; Value *p = flows.lookup(k); return p == 0;", 1),
        ("flows.update(k, v); Value *p = flows.lookup(k); return p != 0 && p->count == 5;", 1),
        ("Value *p = flows.lookup(k); return p && p->count == 0;", 0),
        ("flows.update(k, v); while (flows.lookup(k)) flows.delete(k); return 3;", 3),
    ] {
        let body = body.replace("while", "\n#pragma bound 4\nwhile");
        assert_eq!(with_tables("ulong", &body), wanted, "{body}");
    }
}

#[test]
fn parts_of_values_keep_their_neighbours() {
    let body = "
        flows.update(k, v);
        Value *p = flows.lookup(k);
        p->odd = 0x1fff;
        p->odd += 3;
        p->flags = 5;
        p->more = 17;
        p->flags += 1;
        p->marks[3] = 0x1234;
        for (uint i = 0; i < 3; i++) { p->marks[i] = i + 7; seen[i] = p->marks[i]; }
        uchar *bytes = (uchar *)&p->marks[3];
        bytes[1] ^= 0xff;
        return p->odd | (ulong)p->flags << 16 | (ulong)p->more << 24 | (ulong)p->marks[3] << 32
            | (ulong)seen[2] << 48;
    ";
    assert_eq!(with_tables("ulong", body), 0x0009_ed34_1106_0002);
}

#[test]
fn padding_of_keys_does_not_count() {
    // The third key comes from bytes that differ from the first only in the padding.
    let body = "
        union Raw { Key key; uchar bytes[12]; };
        union Raw raw;
        raw.key = k;
        raw.bytes[11] = 0xaa;
        flows.update(k, v);
        return flows.lookup(raw.key) ? 1 : 0;
    ";
    let body = body.replace("union Raw { Key key; uchar bytes[12]; };", "");
    let text = format!(
        "{TYPES} union Raw {{ Key key; uchar bytes[12]; }};
        .element Test (->) {{
            .state {{ table<Key, Value> flows[4]; }}
            .handler {{}}
            .method uint call() {{ Key k = {{ 1, 2, 3, 4 }}; Value v = {{ 5 }}; {} }}
        }}",
        body.replace("union Raw raw", "Raw raw")
    );
    assert_eq!(super::call(&text, &[]).to_u64(), 1);
    let program = lowered(&text).expect("it is right");
    let table = &program.elements[0].tables[0];
    assert_eq!((table.key_bits, table.value_bits), (32 + 32 + 16 + 8, 24 * 8));
}

#[test]
fn each_kind_keeps_its_rules() {
    for (body, wanted) in [
        (
            "for (uint i = 0; i < 6; i++) { k.port = i; seen[0] += flows.update(k, v); }
              return seen[0];",
            4,
        ),
        (
            "recent.update(1, 10); recent.update(2, 20); recent.lookup(1); recent.update(3, 30);
          return recent.lookup(2) ? 99 : *recent.lookup(1) + *recent.lookup(3);",
            40,
        ),
        (
            "routes.update(10.0.0.0, 8, 1); routes.update(10.1.0.0, 16, 2); routes.update(0, 0, 3);
          ushort *a = routes.lookup(10.1.2.3); ushort *b = routes.lookup(10.2.2.3);
          ushort *c = routes.lookup(11.0.0.1); return *a * 100 + *b * 10 + *c;",
            213,
        ),
        (
            "routes.update(10.1.99.99, 16, 2); routes.delete(10.1.0.0, 16);
          return routes.lookup(10.1.2.3) ? 1 : 0;",
            0,
        ),
        ("return routes.update(10.1.0.0, 33, 2);", 0),
        (
            "slots.update(7, 70); uint *s = slots.lookup(7); *s += 1;
          return *s + slots.update(8, 1) * 1000 + slots.delete(7) * 1000
              + (slots.lookup(8) ? 1000 : 0);",
            71,
        ),
    ] {
        assert_eq!(with_tables("ulong", body), wanted, "{body}");
    }
}

#[test]
fn handlers_init_and_templates_use_tables() {
    let text = "
        .element Count<uint N = 4> (uint in -> uint out) {
            .state { lru table<uint, uint##N> counts[N * 2]; }
            .init { counts.update(7, 100); }
            .handler {
                uint key = read_input_port(in);
                uint##N *count = counts.lookup(key);
                if (count) *count += 1;
                else counts.update(key, 1);
                uint answer = 0;
                switch (key & 1) {
                    case 0: { uint##N *again = counts.lookup(key); answer = *again; break; }
                    default: answer = *counts.lookup(key) + 50;
                }
                set_output_port(out, answer);
            }
        }
        .element Wide (uint in -> uint out) { .handler {} }
    "
    .replace("<uint N = 4>", "<uint N = 16>");
    let program = with_instance(&text);
    let mut interpreter = Interpreter::new(&program, &Options::default()).unwrap();
    let input = interpreter.endpoint("in").unwrap();
    for key in [7, 8, 7, 8, 9] {
        interpreter.feed_item(input, Bits::from_u64(32, key)).unwrap();
    }
    interpreter.run(1_000).unwrap();
    let output = interpreter.endpoint("out").unwrap();
    let out = interpreter.take_items(output).unwrap();
    assert_eq!(out.iter().map(Bits::to_u64).collect::<Vec<_>>(), [151, 1, 152, 2, 51]);
    let entries = interpreter.table_entries(InstanceId(0), "counts").unwrap();
    let entries: Vec<_> = entries.iter().map(|(k, v)| (k.to_u64(), v.to_u64())).collect();
    assert_eq!(entries, [(7, 102), (8, 2), (9, 1)]);
}

#[test]
fn names_of_kinds_stay_names() {
    let body =
        "uint lru = 1; uint lpm = 2; uint array[2]; array[1] = 3; return lru + lpm + array[1];";
    assert_eq!(value("", "uint", body), 6);
}

#[test]
fn pointers_of_other_arms_are_not_known() {
    let text = "
        .element Wrong (uint in -> uint out) {
            .state { table<uint, uint> t[4]; }
            .handler {
                uint x = read_input_port(in);
                switch (x) {
                    case 0: uint *p = t.lookup(x); set_output_port(out, *p); break;
                    case 1: set_output_port(out, *p);
                }
            }
        }
    ";
    assert!(errors(text).contains("[E0323]"), "{}", errors(text));
}
