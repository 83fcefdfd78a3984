use freeport_kv_engine::*;
struct Instant(f64);
impl Instant { fn now() -> Self { let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 }; unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t); } Self(t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9) }
 fn elapsed(&self) -> std::time::Duration { std::time::Duration::from_secs_f64(Self::now().0 - self.0) } }
struct Sum(u64, u64);
impl Replies for Sum {
    #[inline(always)] fn get(&mut self, _: usize, v: Option<Value<'_>>) { if let Some(v) = v { self.0 += u64::from(v.bytes[0]); self.1 += 1 } }
    #[inline(always)] fn put(&mut self, _: usize, s: Result<Stored, OutOfMemory>) { self.1 += u64::from(s.is_ok()) }
    #[inline(always)] fn delete(&mut self, _: usize, d: bool) { self.1 += u64::from(d) }
    #[inline(always)] fn update(&mut self, _: usize, v: Option<ValueMut<'_>>) { if let Some(v) = v { 
        if let Some(b) = v.bytes.first_chunk_mut::<8>() { *b = (u64::from_le_bytes(*b)+1).to_le_bytes(); } self.1 += 1 } }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let gib: f64 = a[1].parse().unwrap(); let kb: usize = a[2].parse().unwrap(); let vb: usize = a[3].parse().unwrap();
    let ratio: f64 = a[4].parse().unwrap(); let util: f64 = a[5].parse().unwrap(); let zipf = a[6] == "zipf";
    let mem = (gib * (1u64<<30) as f64) as usize;
    let index = if ratio == 0.0 { Index::Growing { fill: 0.7 } } else { Index::Fixed { ratio } };
    let mut e = Engine::new(Options { memory_bytes: mem, index, inline_threshold: 20, seed: 5 }).unwrap();
    let n = (mem as f64 * util / (kb+vb) as f64) as usize;
    let key = |i: u64| { let mut k = [0u8; 64]; k[..8].copy_from_slice(&i.wrapping_mul(0x9E3779B97F4A7C15).to_le_bytes()); if kb < 8 {k[..8].copy_from_slice(&i.to_le_bytes());} k };
    let value = [7u8; 4096];
    let t = Instant::now();
    for i in 0..n as u64 { e.put(&key(i)[..kb], &value[..vb]).unwrap(); }
    println!("{n} pairs, fill {:.1} M/s", n as f64 / t.elapsed().as_secs_f64() / 1e6);
    // ranks
    let mut r = fastrand::Rng::with_seed(1);
    const D: usize = 1 << 22;
    let theta = 0.99; let zetan: f64 = (1..=n).map(|i| 1.0/(i as f64).powf(theta)).sum(); let zeta2 = 1.0 + 0.5f64.powf(theta);
    let alpha = 1.0/(1.0-theta); let eta = (1.0-(2.0/n as f64).powf(1.0-theta))/(1.0-zeta2/zetan);
    let ids: Vec<u64> = (0..D).map(|_| if zipf { let u = r.f64(); let uz = u*zetan; let k = if uz < 1.0 {0} else if uz < zeta2 {1} else { (n as f64 * (eta*u-eta+1.0).powf(alpha)) as u64 }; (k.wrapping_mul(0xD1B54A32D192ED03)) % n as u64 } else { r.u64(0..n as u64) }).collect();
    let keys: Vec<[u8;64]> = Vec::new(); let _ = keys;
    let mut flat = vec![0u8; D*kb]; for (i,&id) in ids.iter().enumerate() { flat[i*kb..][..kb].copy_from_slice(&key(id)[..kb]); }
    let batch: usize = a.get(7).map_or(256, |s| s.parse().unwrap());
    for op in std::env::var("OPS").unwrap_or("get,put,upd,get1".into()).split(",") {
      let mut best = f64::MAX; let mut hits = 0;
      for part in flat.chunks(kb << 15).cycle().take(600) {
        let mut s = Sum(0,0); let t = Instant::now();
        let mut req = Vec::with_capacity(batch);
        for c in part.chunks(batch*kb) {
            if op == "get1" { for k in c.chunks(kb) { if let Some(v) = e.get(k) { s.0 += u64::from(v.bytes[0]); s.1+=1; } } continue }
            req.clear();
            req.extend(c.chunks_exact(kb).map(|k| match op { "get" => Request::Get(k), "put" => Request::Put(k, &value[..vb]), _ => Request::Update(k) }));
            e.run(&req, &mut s);
        }
        hits += s.1 + (s.0 & 1);
        best = best.min(t.elapsed().as_secs_f64());
      }
      println!("{op}: {:.1} M/s {hits}", (1<<15) as f64/best/1e6);
    }
}
