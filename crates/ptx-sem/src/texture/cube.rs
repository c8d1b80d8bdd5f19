//! Cubemaps: the face that a direction hits, and the point in it (PTX ISA §9.7.9.3).
//!
//! The manual defines neither order nor orientation of the faces; both are OpenGL's (reading A133): layers +x
//! -x +y -y +z -z.

/// The point of the cube that a direction hits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubePoint {
    /// Layer of the face: +x -x +y -y +z -z.
    pub face: u32,
    /// The normalized coordinate in the first dimension of the face.
    pub s: f64,
    /// The normalized coordinate in the second dimension of the face.
    pub t: f64,
}

/// A direction in the frame of a face: the two minor axes in the face's orientation, and the length along the
/// major axis.
struct Turned {
    sc: f64,
    tc: f64,
    ma: f64,
}

/// OpenGL's table of faces.
fn turn(face: u32, [x, y, z]: [f64; 3]) -> Turned {
    match face {
        0 => Turned { sc: -z, tc: -y, ma: x },
        1 => Turned { sc: z, tc: -y, ma: -x },
        2 => Turned { sc: x, tc: z, ma: y },
        3 => Turned { sc: x, tc: -z, ma: -y },
        4 => Turned { sc: x, tc: -y, ma: z },
        _ => Turned { sc: -x, tc: -y, ma: -z },
    }
}

/// The face that a direction hits, and the coordinates there: s = (sc / |ma| + 1) / 2, t = (tc / |ma| + 1) /
/// 2. The axis with the largest magnitude is the major one; x precedes y and y precedes z if magnitudes are
/// equal (reading A133).
///
/// # Source
/// PTX ISA §9.7.9.3; OpenGL 4.6 §8.13, table 8.19.
#[must_use]
pub fn cube_face(direction: [f32; 3]) -> CubePoint {
    let [x, y, z] = direction.map(f64::from);
    let (ax, ay, az) = (x.abs(), y.abs(), z.abs());
    let (axis, major) = if ax >= ay && ax >= az {
        (0, x)
    } else if ay >= az {
        (2, y)
    } else {
        (4, z)
    };
    let face = axis + u32::from(major.is_sign_negative());
    let Turned { sc, tc, ma } = turn(face, [x, y, z]);
    CubePoint { face, s: (sc / ma + 1.0) / 2.0, t: (tc / ma + 1.0) / 2.0 }
}

/// The change of the coordinates in the face when the direction changes by `change`: the derivative of
/// [`cube_face`] on the face that `direction` hits.
///
/// # Source
/// PTX ISA §9.7.9.3 gives no formula (reading A135); this is the exact derivative.
#[must_use]
pub fn cube_gradient(direction: [f32; 3], change: [f32; 3]) -> [f64; 2] {
    let at = turn(cube_face(direction).face, direction.map(f64::from));
    let by = turn(cube_face(direction).face, change.map(f64::from));
    let derivative = |c: f64, dc: f64| (dc * at.ma - c * by.ma) / (at.ma * at.ma) / 2.0;
    [derivative(at.sc, by.sc), derivative(at.tc, by.tc)]
}
