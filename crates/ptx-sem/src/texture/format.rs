//! Channel data types and orders: a texel's bits and its components (PTX ISA §5.3.3, Tables 11 and 12).
//!
//! Conversions are OpenCL's, whose enumerations the tables contain: UNORM with n bits c / (2^n - 1), SNORM
//! max(-1, c / (2^(n-1) - 1)).
//!
//! **Invariant:** a texel has at most 16 bytes. Its components start at the least significant bit, in the
//! order that the channel order names, each as wide as the type. The packed types have their own layout: red
//! is in the highest bits (bit 15 of `555` and bits 30, 31 of `101010` are unused).

use crate::half::{f16_of_f64, f64_of_f16};

/// Channel data type. PTX ISA Table 11.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the manual's names")]
pub enum ChannelType {
    SnormInt8,
    SnormInt16,
    UnormInt8,
    UnormInt16,
    UnormShort565,
    UnormShort555,
    UnormInt101010,
    SignedInt8,
    SignedInt16,
    SignedInt32,
    UnsignedInt8,
    UnsignedInt16,
    UnsignedInt32,
    HalfFloat,
    Float,
}

/// The type of a component in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Component {
    /// `.f32`: UNORM, SNORM, HALF, FLOAT.
    Float,
    /// `.u32`
    Unsigned,
    /// `.s32`
    Signed,
}

impl ChannelType {
    /// All types, in the order of Table 11, whose numbers begin at 0x10D0.
    pub const ALL: [ChannelType; 15] = {
        use ChannelType::*;
        [
            SnormInt8,
            SnormInt16,
            UnormInt8,
            UnormInt16,
            UnormShort565,
            UnormShort555,
            UnormInt101010,
            SignedInt8,
            SignedInt16,
            SignedInt32,
            UnsignedInt8,
            UnsignedInt16,
            UnsignedInt32,
            HalfFloat,
            Float,
        ]
    };

    /// The number in Table 11, which `txq.channel_data_type` returns.
    #[must_use]
    pub fn number(self) -> u32 {
        0x10D0 + self as u32
    }

    /// The type of a component in the program.
    #[must_use]
    pub fn component(self) -> Component {
        match self {
            ChannelType::SnormInt8
            | ChannelType::SnormInt16
            | ChannelType::UnormInt8
            | ChannelType::UnormInt16
            | ChannelType::UnormShort565
            | ChannelType::UnormShort555
            | ChannelType::UnormInt101010
            | ChannelType::HalfFloat
            | ChannelType::Float => Component::Float,
            ChannelType::SignedInt8 | ChannelType::SignedInt16 | ChannelType::SignedInt32 => {
                Component::Signed
            }
            ChannelType::UnsignedInt8 | ChannelType::UnsignedInt16 | ChannelType::UnsignedInt32 => {
                Component::Unsigned
            }
        }
    }

    /// Bits of each component in a packed texel, red first; `None` for types that are not packed.
    fn packed(self) -> Option<[u32; 3]> {
        match self {
            ChannelType::UnormShort565 => Some([5, 6, 5]),
            ChannelType::UnormShort555 => Some([5, 5, 5]),
            ChannelType::UnormInt101010 => Some([10, 10, 10]),
            _ => None,
        }
    }

    /// Bits of a component; for a packed type, bits of the texel.
    fn bits(self) -> u32 {
        match self {
            ChannelType::SnormInt8
            | ChannelType::UnormInt8
            | ChannelType::SignedInt8
            | ChannelType::UnsignedInt8 => 8,
            ChannelType::SnormInt16
            | ChannelType::UnormInt16
            | ChannelType::SignedInt16
            | ChannelType::UnsignedInt16
            | ChannelType::HalfFloat
            | ChannelType::UnormShort565
            | ChannelType::UnormShort555 => 16,
            ChannelType::SignedInt32
            | ChannelType::UnsignedInt32
            | ChannelType::Float
            | ChannelType::UnormInt101010 => 32,
        }
    }

    /// A component's value from its bits: the bits of an `f32`, or an integer.
    fn value(self, bits: u32) -> u32 {
        let unorm = |most: u32| (bits as f32 / most as f32).to_bits();
        let snorm = |value: i32, most: i32| (value.max(-most) as f32 / most as f32).to_bits();
        match self {
            ChannelType::SnormInt8 => snorm(i32::from(bits as i8), 127),
            ChannelType::SnormInt16 => snorm(i32::from(bits as i16), 32767),
            ChannelType::UnormInt8 => unorm(255),
            ChannelType::UnormInt16 => unorm(65535),
            // The packed component's width is needed; `decode` converts it.
            ChannelType::UnormShort565 | ChannelType::UnormShort555 | ChannelType::UnormInt101010 => bits,
            ChannelType::SignedInt8 => i32::from(bits as i8) as u32,
            ChannelType::SignedInt16 => i32::from(bits as i16) as u32,
            ChannelType::UnsignedInt8
            | ChannelType::UnsignedInt16
            | ChannelType::UnsignedInt32
            | ChannelType::SignedInt32
            | ChannelType::Float => bits,
            ChannelType::HalfFloat => (f64_of_f16(bits as u16) as f32).to_bits(),
        }
    }

    /// A component's bits from its value: rounded to nearest even, saturated; NaN gives 0 in a normalised
    /// format.
    fn bits_of(self, value: u32) -> u32 {
        let float = f64::from(f32::from_bits(value));
        let norm = |least: f64, most: f64| {
            let scaled = float.clamp(least, 1.0) * most;
            if scaled.is_nan() { 0 } else { scaled.round_ties_even() as i32 as u32 }
        };
        match self {
            ChannelType::SnormInt8 => norm(-1.0, 127.0) & 0xff,
            ChannelType::SnormInt16 => norm(-1.0, 32767.0) & 0xffff,
            ChannelType::UnormInt8 => norm(0.0, 255.0),
            ChannelType::UnormInt16 => norm(0.0, 65535.0),
            ChannelType::UnormShort565 | ChannelType::UnormShort555 | ChannelType::UnormInt101010 => value,
            ChannelType::SignedInt8 => (value as i32).clamp(-128, 127) as u32 & 0xff,
            ChannelType::SignedInt16 => (value as i32).clamp(-32768, 32767) as u32 & 0xffff,
            ChannelType::UnsignedInt8 => value.min(0xff),
            ChannelType::UnsignedInt16 => value.min(0xffff),
            ChannelType::UnsignedInt32 | ChannelType::SignedInt32 | ChannelType::Float => value,
            ChannelType::HalfFloat => u32::from(f16_of_f64(float)),
        }
    }
}

/// Channel order. PTX ISA Table 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the manual's names")]
pub enum ChannelOrder {
    R,
    A,
    Rg,
    Ra,
    Rgb,
    Rgba,
    Bgra,
    Argb,
    Intensity,
    Luminance,
}

impl ChannelOrder {
    /// All orders, in the order of Table 12, whose numbers begin at 0x10B0.
    pub const ALL: [ChannelOrder; 10] = {
        use ChannelOrder::*;
        [R, A, Rg, Ra, Rgb, Rgba, Bgra, Argb, Intensity, Luminance]
    };

    /// The number in Table 12, which `txq.channel_order` returns.
    #[must_use]
    pub fn number(self) -> u32 {
        0x10B0 + self as u32
    }

    /// The component (an index into R G B A) of each stored channel, lowest channel first.
    #[must_use]
    pub fn stored(self) -> &'static [usize] {
        match self {
            ChannelOrder::R | ChannelOrder::Intensity | ChannelOrder::Luminance => &[0],
            ChannelOrder::A => &[3],
            ChannelOrder::Rg => &[0, 1],
            ChannelOrder::Ra => &[0, 3],
            ChannelOrder::Rgb => &[0, 1, 2],
            ChannelOrder::Rgba => &[0, 1, 2, 3],
            ChannelOrder::Bgra => &[2, 1, 0, 3],
            ChannelOrder::Argb => &[3, 0, 1, 2],
        }
    }

    /// The components that have a stored channel, as bits R G B A from bit 0.
    fn given(self) -> u8 {
        match self {
            ChannelOrder::Intensity => 0b1111,
            ChannelOrder::Luminance => 0b0111,
            _ => self.stored().iter().fold(0, |all, component| all | 1 << component),
        }
    }
}

/// The format of a texel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    /// Channel data type.
    pub data_type: ChannelType,
    /// Channel order.
    pub order: ChannelOrder,
}

/// The components R G B A of a texel, each the bits of an `.f32`, `.u32` or `.s32` as
/// [`ChannelType::component`] says.
pub type Texel = [u32; 4];

impl Format {
    /// The format, if the order is valid for the type: the packed types are RGB.
    #[must_use]
    pub fn new(data_type: ChannelType, order: ChannelOrder) -> Option<Self> {
        let fits = data_type.packed().is_none() || order == ChannelOrder::Rgb;
        fits.then_some(Self { data_type, order })
    }

    /// Bytes of a texel.
    #[must_use]
    pub fn bytes(self) -> u32 {
        let channels = if self.data_type.packed().is_some() { 1 } else { self.order.stored().len() as u32 };
        channels * self.data_type.bits() / 8
    }

    /// Bytes of a texel's units, which are its alignment.
    #[must_use]
    pub fn unit(self) -> u32 {
        self.data_type.bits() / 8
    }

    /// The components of a texel. Channels that the order lacks are 0, and alpha is 1 (OpenCL; reading A139);
    /// INTENSITY is all four components, LUMINANCE the first three. A border texel has zero bits, so its
    /// alpha is 1 if the format has no alpha, as in OpenCL.
    #[must_use]
    pub fn decode(self, bits: u128) -> Texel {
        let one = match self.data_type.component() {
            Component::Float => 1.0f32.to_bits(),
            Component::Unsigned | Component::Signed => 1,
        };
        let mut texel = [0, 0, 0, one];
        if let Some(widths) = self.data_type.packed() {
            let mut end: u32 = widths.iter().sum();
            for (component, width) in texel.iter_mut().zip(widths) {
                end -= width;
                let most = (1u32 << width) - 1;
                let raw = (bits >> end) as u32 & most;
                *component = (raw as f32 / most as f32).to_bits();
            }
            return texel;
        }
        let width = self.data_type.bits();
        for (place, component) in self.order.stored().iter().enumerate() {
            let raw = (bits >> (place as u32 * width)) as u32 & (u32::MAX >> (32 - width));
            texel[*component] = self.data_type.value(raw);
        }
        match self.order {
            ChannelOrder::Intensity => [texel[0]; 4],
            ChannelOrder::Luminance => [texel[0], texel[0], texel[0], one],
            _ => texel,
        }
    }

    /// The bits of a texel with these components: `sust.p`. Components that the format lacks are dropped.
    #[must_use]
    pub fn encode(self, texel: Texel) -> u128 {
        if let Some(widths) = self.data_type.packed() {
            return texel.iter().zip(widths).fold(0, |bits, (component, width)| {
                let scaled =
                    f64::from(f32::from_bits(*component)).clamp(0.0, 1.0) * f64::from((1u32 << width) - 1);
                let rounded = if scaled.is_nan() { 0 } else { scaled.round_ties_even() as u128 };
                bits << width | rounded
            });
        }
        let width = self.data_type.bits();
        let channels = self.order.stored().iter().enumerate();
        channels.fold(0, |bits, (place, component)| {
            bits | u128::from(self.data_type.bits_of(texel[*component])) << (place as u32 * width)
        })
    }

    /// Whether a component of a texel comes from the texture (and is not the default for a missing one).
    #[must_use]
    pub fn gives(self, component: usize) -> bool {
        let given = if self.data_type.packed().is_some() { 0b0111 } else { self.order.given() };
        given >> component & 1 != 0
    }
}
