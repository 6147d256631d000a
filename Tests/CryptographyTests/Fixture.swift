// SPDX-License-Identifier: Apache-2.0

enum Fixture {
    /// `openssl dgst -provider legacy -md4` of the bytes 0, 1, 2, … counted modulo 256.
    static let md4OfCountedBytes: [(count: Int, digest: String)] = [
        (55, "cc8a7f2bd608e3eeecb7f121d13bea55"),
        (56, "b8e94b6408bbfa6ec9805bf21bc05cbd"),
        (57, "6aec85410412ff54078a9fc72a55ace5"),
        (63, "54ba4472fcd03e99cf28f90eed9f2ae0"),
        (64, "2de6578f0e7898fa17acd84b79685d3a"),
        (65, "3a4f2ca37eebdf6dc99a6155517b74fc"),
        (119, "9c1067170940ce8f8e4745d362675fab"),
        (120, "c5bb35660e3d0a286a96ea3aa4922b3c"),
        (128, "e1275970eb67d2d996e6e658270aa149"),
        (1000, "ddef918b4199515fafb1e5fc23e801c3"),
    ]
}
