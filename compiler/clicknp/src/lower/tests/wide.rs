// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Wide integers: Karatsuba multiplication by template recursion, compared with `num-bigint`.

use super::call;
use freeport_ir::Bits;
use num_bigint::BigUint;

/// Multiplies two numbers of N bits; below 64 bits it uses the built-in multiplication.
const KARATSUBA: &str = "
template <uint N> inline uint##(2 * N) multiply(uint##N a, uint##N b) {
    if (N <= 32) {
        return (uint##(2 * N))a * b;
    } else {
        const uint H = N / 2;
        uint##H a_low = a[H - 1:0];
        uint##H a_high = a[N - 1:H];
        uint##H b_low = b[H - 1:0];
        uint##H b_high = b[N - 1:H];
        uint##N low = multiply<H>(a_low, b_low);
        uint##N high = multiply<H>(a_high, b_high);
        // |a_low - a_high| * |b_high - b_low| keeps the factors at H bits.
        bool a_flips = a_low < a_high;
        bool b_flips = b_high < b_low;
        uint##H a_distance = a_flips ? a_high - a_low : a_low - a_high;
        uint##H b_distance = b_flips ? b_low - b_high : b_high - b_low;
        uint##N cross = multiply<H>(a_distance, b_distance);
        uint##(2 * N) middle = (uint##(2 * N))low + high;
        if (a_flips != b_flips) { middle -= cross; } else { middle += cross; }
        uint##(2 * N) result = low;
        result[2 * N - 1:N] = high;
        return result + (middle << H);
    }
}
";

fn check(width: u32, rounds: usize) {
    let text = format!(
        "{KARATSUBA} .element Test (->) {{ .handler {{}}
        .method uint{} call(uint{width} a, uint{width} b) {{ return multiply<{width}>(a, b); }} }}",
        2 * width
    );
    let mut random = fastrand::Rng::with_seed(u64::from(width));
    for round in 0..rounds {
        let mut number = || -> Vec<u8> {
            let fill = if round == 0 { Some(0xff) } else { None };
            (0..width / 8).map(|_| fill.unwrap_or_else(|| random.u8(..))).collect()
        };
        let (a, b) = (number(), number());
        let args = [Bits::from_le_bytes(width, &a), Bits::from_le_bytes(width, &b)];
        let product = call(&text, &args);
        let want = BigUint::from_bytes_le(&a) * BigUint::from_bytes_le(&b);
        assert_eq!(BigUint::from_bytes_le(&product.to_le_bytes()), want, "{width} bits");
    }
}

#[test]
fn karatsuba_agrees_with_big_integers_up_to_256_bits() {
    check(64, 4);
    check(128, 3);
    check(256, 2);
}

#[test]
fn karatsuba_agrees_with_big_integers_up_to_2048_bits() {
    check(512, 1);
    check(1024, 1);
    check(2048, 1);
}
