// SPDX-License-Identifier: Apache-2.0

/// Values computed by other implementations.
enum Fixture {
    /// pyspnego 0.12.4, ntowfv2.
    static let responseKeys: [(user: String, domain: String, password: String, key: String)] = [
        ("jdoe", "ACME", "Sesame1!", "9d526492ae15a22d5cb702945b0e4aa3"),
        ("jdoe@acme.example", "", "Sesame1!", "49f62f2050cb8c8019411f87e59e7fca"),
        ("jörgé", "ACME", "pässwörd€𝄞", "b21ed41247b49ff7ba4d4c7754e1e5b7"),
        ("ǆόης", "", "ключ", "13de02441824f12c584196a9b3b01283"),
        ("straße", "", "x", "db19b6c886e4f9e4991d6f4e8d88b653"),
        ("u", "", "", "b944060011e842785f38315c4e3cc003"),
        ("u", "D", String(repeating: "p", count: 200), "cc19c0a813841999fde52fe7ecb54b8c"),
    ]

    /// pyspnego 0.12.4, GssChannelBindings.pack(), in hexadecimal.
    static let channelBindingHashes: [(applicationData: String, hash: String)] = [
        ("", "441018525208457705bf09a8ee3c1093"),
        (
            "746c732d7365727665722d656e642d706f696e743a000102030405060708090a0b0c0d0e0f1011121314151617"
                + "18191a1b1c1d1e1f",
            "8f1214c9c9cab8dc3bf866da9aba57a7"
        ),
        (
            "746c732d7365727665722d656e642d706f696e743a000102030405060708090a0b0c0d0e0f1011121314151617"
                + "18191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f",
            "97987e635e8710fe8eb4e56a60a0b621"
        ),
    ]

    /// Python's hmac over 01 02 and the two messages of the specification.
    static let micOfSpecMessages = "f93905cb77df06ebfab3d47b053f48c4"

    /// RFC 6229 §2, also confirmed with OpenSSL.
    static let rc4Streams: [(key: String, offset: Int, stream: String)] = [
        ("0102030405", 0, "b2396305f03dc027ccc3524a0a1118a8"),
        ("0102030405", 240, "28cb1132c96ce286421dcaadb8b69eae"),
        ("0102030405", 4096, "ff25b58995996707e51fbdf08b34d875"),
        ("01020304050607", 0, "293f02d47f37c9b633f2af5285feb46b"),
        ("01020304050607", 240, "914f02531c9218810df60f67e338154c"),
        ("01020304050607", 4096, "e74b0b9731227fd37c0ec08a47ddd8b8"),
        ("0102030405060708090a0b0c0d0e0f10", 0, "9ac7cc9a609d1ef7b2932899cde41b97"),
        ("0102030405060708090a0b0c0d0e0f10", 240, "065902e4b620f6cc36c8589f66432f2b"),
        ("0102030405060708090a0b0c0d0e0f10", 4096, "a36a4c301ae8ac13610ccbc12256cacc"),
        (
            "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20", 0,
            "eaa6bd25880bf93d3f5d1e4ca2611d91"
        ),
        (
            "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20", 240,
            "114ae344ded71b35f2e60febad727fd8"
        ),
        (
            "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20", 4096,
            "f3e4c0a2e02d1d01f7f0a74618af2b48"
        ),
        ("833222772a", 0, "80ad97bdc973df8a2e879e92a497efda"),
        ("833222772a", 240, "faa148e99046181fec6b2085f3b20ed9"),
        ("833222772a", 4096, "bf42c3018c2f7c66bfde524975768115"),
        ("ebb46227c6cc8b37641910833222772a", 0, "720c94b63edf44e131d950ca211a5a30"),
        ("ebb46227c6cc8b37641910833222772a", 240, "b3394a40aabf75cba42282ef25a0059f"),
        ("ebb46227c6cc8b37641910833222772a", 4096, "5bbeb4787d59e5373fdbea6c6f75c29b"),
    ]
}
