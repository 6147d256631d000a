// SPDX-License-Identifier: Apache-2.0

import Testing

/// The requests of AWS's test suite for Signature Version 4, with the signatures that it expects in the Authorization
/// field and in a presigned URL. Those that only repeat another request, or do not normalise the path, are left out:
/// the latter is a choice that a service makes.
struct PublishedVector: Sendable, CustomTestStringConvertible {
    let name: String
    let method: String
    let target: String
    /// `Name:value`
    let fields: [String]
    let content: String
    let signature: String
    let presignedSignature: String

    var testDescription: String { name }

    init(
        _ name: String, _ method: String, _ target: String, fields: [String] = [], content: String = "",
        _ signature: String, _ presignedSignature: String
    ) {
        self.name = name
        self.method = method
        self.target = target
        self.fields = fields
        self.content = content
        self.signature = signature
        self.presignedSignature = presignedSignature
    }

    private static let unreserved = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

    static let all = [
        PublishedVector(
            "get-header-key-duplicate", "GET", "/",
            fields: ["My-Header1:value2", "My-Header1:value2", "My-Header1:value1"],
            "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
            "3349ee0b81b4b589da0ff28a395c3591e04de515651dd74f298fa992d1507a97"),
        PublishedVector(
            "get-header-value-multiline", "GET", "/", fields: ["My-Header1:value1\n  value2\n     value3"],
            "cfd34249e4b1c8d6b91ef74165d41a32e5fab3306300901bb65a51a73575eefd",
            "e6f5def831211aca02987a44b96826706278c7bc078112ae0263659c5b2f2d56"),
        PublishedVector(
            "get-header-value-order", "GET", "/",
            fields: ["My-Header1:value4", "My-Header1:value1", "My-Header1:value3", "My-Header1:value2"],
            "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01",
            "313720e71ca6202fdcfa9b20f88de01a4eb0638a83c833b1c184359a4eda864e"),
        PublishedVector(
            "get-header-value-trim", "GET", "/", fields: ["My-Header1: value1", "My-Header2: \"a   b   c\""],
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
            "e7bb0fd515e125e1aec2ecc4c0c17484fb06f6846b927c35e46005dd3df3acd4"),
        PublishedVector(
            "get-relative", "GET", "/example/..",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d"),
        PublishedVector(
            "get-relative-relative", "GET", "/example1/example2/../..",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d"),
        PublishedVector(
            "get-slash-dot-slash", "GET", "/./",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d"),
        PublishedVector(
            "get-slash", "GET", "//",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d"),
        PublishedVector(
            "get-slash-pointless-dot", "GET", "/./example",
            "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5",
            "35034b1a0bdd969f346975386daf8aedfd4976573b8348cf4f67eaa41c5857de"),
        PublishedVector(
            "get-slashes", "GET", "//example//",
            "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84",
            "c1834e8fb0307243711f0f907f6ab7311ed300d87f13792d7ee4da89ab93e082"),
        PublishedVector(
            "get-space", "GET", "/example space/",
            "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741",
            "7a1f416954786484c9824d93c1f26ef64acb9b1b6c9154d08c9f07d0e394abf6"),
        PublishedVector(
            "get-unreserved", "GET", "/\(unreserved)",
            "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
            "95968482db1b9e0fadef6efc1bd24689f77c77d9ef56919c96a28cc92e0d6005"),
        PublishedVector(
            "get-utf8", "GET", "/ሴ",
            "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85",
            "10eae3f14a260bd3911cc6d008d3c576d143b05b62f09782a7a4b37f52178e44"),
        PublishedVector(
            "get-vanilla", "GET", "/",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d"),
        PublishedVector(
            "get-vanilla-empty-query-key", "GET", "/?Param1=value1",
            "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb",
            "49096700cbbaa5753443850f40df10f904fc2fdb544dc9512203cc77c471a9de"),
        PublishedVector(
            "get-vanilla-query-order-encoded", "GET", "/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1",
            "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac",
            "c5f1848ceec943ac2ca68ee720460c23aaae30a2300586597ada94c4a65e4787"),
        PublishedVector(
            "get-vanilla-query-order-key-case", "GET", "/?Param2=value2&Param1=value1",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            "86012e2c9ad4d77369f5d81c11f75158aae4f895a085212cc6d3f923d300bed5"),
        PublishedVector(
            "get-vanilla-query-unreserved", "GET", "/?\(unreserved)=\(unreserved)",
            "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197",
            "8e76a88a7433637b12778d5592799b29ad21ecd6cf6325051c21d86f0acda2bf"),
        PublishedVector(
            "get-vanilla-utf8-query", "GET", "/?ሴ=bar",
            "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
            "0bdd809b1519ac4f0c1dc3540e2cc46bd0c7f778eda408b2ebf3b913d21ff600"),
        PublishedVector(
            "post-header-key-case", "POST", "/",
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            "2ce6e6d2e0cf2f9d1b55fafec88cd20574c31dc2e7631979f71ba2310083e95b"),
        PublishedVector(
            "post-header-key-sort", "POST", "/", fields: ["My-Header1:value1"],
            "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c",
            "c09d07e0d55871f10f2a6d350d994acf6825a3cae70673d7def55616e6119dd7"),
        PublishedVector(
            "post-header-value-case", "POST", "/", fields: ["My-Header1:VALUE1"],
            "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d",
            "0698bc9e4f7f9139065ba2909c0e99da257e8e2a42492a097bcd46d792391fed"),
        PublishedVector(
            "post-vanilla-empty-query-value", "POST", "/?Param1=value1",
            "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11",
            "a9ef26247f293bffe40eeff86a0480ba8c14d31503b2e0c3399e3a16bf1a3682"),
        PublishedVector(
            "post-x-www-form-urlencoded", "POST", "/",
            fields: ["Content-Type:application/x-www-form-urlencoded", "Content-Length:13"], content: "Param1=value1",
            "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b",
            "89a40deed0f26f9461242825a082d2222717248abc7ab41f552ad84a94ad46e9"),
    ]
}
