// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@Suite struct ScryptTests {
    /// RFC 7914 §12; without its fourth vector, which takes 1 GiB.
    @Test(arguments: [
        (
            "", "", Scrypt(costExponent: 4, blockSize: 1, parallelization: 1),
            "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442"
                + "fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906"
        ),
        (
            "password", "NaCl", Scrypt(costExponent: 10, blockSize: 8, parallelization: 16),
            "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"
                + "2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640"
        ),
        (
            "pleaseletmein", "SodiumChloride", Scrypt(costExponent: 14, blockSize: 8, parallelization: 1),
            "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
                + "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
        ),
    ])
    func keysOfTheRFC(passphrase: String, salt: String, scrypt: Scrypt, expected: String) throws {
        let key = try scrypt.key(from: Secret(utf8: passphrase), salt: Array(salt.utf8), lengthBytes: 64)
        #expect(key.withBytes { Hex.encode($0) } == expected)
    }

    @Test(arguments: [
        Scrypt(costExponent: 63, blockSize: 8, parallelization: 1),
        Scrypt(costExponent: 255, blockSize: 8, parallelization: 1),
        Scrypt(costExponent: 40, blockSize: 8, parallelization: 1),
        Scrypt(costExponent: 62, blockSize: .max, parallelization: 1),
    ])
    func costsBeyondReasonAreRefused(scrypt: Scrypt) {
        #expect(throws: CryptographyError(.invalidParameter, "")) {
            try scrypt.key(from: Secret(utf8: "x"), salt: [])
        }
    }

    @Test(arguments: [
        Scrypt(costExponent: 0, blockSize: 8, parallelization: 1),
        Scrypt(costExponent: 4, blockSize: 0, parallelization: 1),
        Scrypt(costExponent: 4, blockSize: 8, parallelization: 0),
    ])
    func parametersWithoutMeaningAreRefused(scrypt: Scrypt) {
        #expect(throws: CryptographyError.self) { try scrypt.key(from: Secret(utf8: "x"), salt: []) }
    }
}
