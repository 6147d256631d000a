# SPDX-License-Identifier: Apache-2.0
# fetch.rb URL: prints the page, with the proxy and the trust anchors from the environment.

require "net/http"

print Net::HTTP.get(URI(ARGV[0]))
