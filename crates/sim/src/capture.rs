//! stub
use crate::packet::*;
use apportion_core::units::*;
#[derive(Debug)]
pub struct LinkCapture;
impl LinkCapture {
    pub fn packet(&mut self, _n: Time, _p: &Packet, _b: &Body) {}
    pub fn finish(self) -> std::io::Result<()> {
        Ok(())
    }
}
