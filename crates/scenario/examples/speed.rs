use std::path::Path;
fn main() {
    for pairs in [1u64, 10_000] {
        let text = format!("seed = 1\nstop = \"10s\"\n[topology]\nkind = \"dumbbell\"\npairs = {pairs}\nbottleneck = {{ rate = \"1Gbit\", delay = \"1ms\" }}\naccess = {{ delay = \"1us * i\" }}\n[flow.f]\ncount = 10000\nfrom = \"l{}\"\nto = \"r{}\"\ntcp = \"rfc\"\nweight = \"i\"\n", if pairs == 1 { "1" } else { "{i}" }, if pairs == 1 { "1" } else { "{i}" });
        for _ in 0..3 {
            let start = std::time::Instant::now();
            let suite = apportion_scenario::load(&text, Path::new("x.toml"), &[], &|p| std::fs::read(p)).unwrap();
            println!("{pairs} pairs: {} flows {:?}", suite.points[0].scenario.flows.len(), start.elapsed());
        }
    }
    let mut text = String::from("seed = 1\nstop = \"10s\"\n[link.l]\nfrom=\"a\"\nto=\"b\"\nrate=\"1Mbit\"\ndelay=\"1ms\"\n");
    for i in 0..10000 { text += &format!("[flow.f{i}]\nfrom = \"a\"\nto = \"b\"\ntcp = \"rfc\"\n"); }
    let start = std::time::Instant::now();
    let suite = apportion_scenario::load(&text, Path::new("x.toml"), &[], &|p| std::fs::read(p)).unwrap();
    println!("explicit: {} flows {:?}", suite.points[0].scenario.flows.len(), start.elapsed());
}
