# An instance of Lambda for hark, by Terraform. Not run by hark's tests; docs/cloud.md says why `hark lambda` is the
# main way. The provider does not try again if no instance is free, and knows no image: install hark in a container.
#
#   export LAMBDALABS_API_KEY=...
#   terraform init && terraform apply -var region=us-east-1 -var ssh_key_name=mine
#   terraform destroy      # until then it is billed

terraform {
  required_providers {
    lambdalabs = {
      source = "elct9620/lambdalabs"
    }
  }
}

variable "instance_type" {
  type    = string
  default = "gpu_1x_a10"
}

variable "region" {
  type = string
}

variable "ssh_key_name" {
  type        = string
  description = "name of a key that the account has"
}

provider "lambdalabs" {}

resource "lambdalabs_instance" "hark" {
  region_name        = var.region
  instance_type_name = var.instance_type
  ssh_key_names      = [var.ssh_key_name]
}

output "ip" {
  value = lambdalabs_instance.hark.ip
}
